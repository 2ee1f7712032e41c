// Colours: the objectives' (safe for colour-blind readers), how they blend, and the ramps of maps.
// Blends happen in OKLab, so that equal parts look equal.

const LIGHT = ['#E69F00', '#0072B2', '#009E73', '#CC79A7', '#56B4E9', '#D55E00', '#332288', '#882255'];
const DARK = ['#F0B03A', '#4BA3E3', '#2FBF94', '#E096C0', '#84CDF5', '#F0803C', '#8C7FE0', '#D0608F'];

export const isDark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
};

/** The colour of objective `index`, in the theme of now. */
export function objectiveColour(index) {
  const colours = isDark() ? DARK : LIGHT;
  return colours[index % colours.length];
}

export const objectiveColours = (count) => Array.from({ length: count }, (_, i) => objectiveColour(i));

/** The two colours of a comparison: neither is an objective's. */
export const sideColours = () => (isDark() ? ['#D58BD6', '#E8E3D2'] : ['#8A3A8C', '#3E444B']);

export const surface = () => rgb(isDark() ? '#1d2228' : '#ffffff');

export function rgb(hex) {
  const value = parseInt(hex.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

export const css = ([r, g, b], alpha = 1) =>
  `rgb(${Math.round(r)} ${Math.round(g)} ${Math.round(b)} / ${alpha})`;

const toLinear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
const toGamma = (c) => (c <= 0.0031308 ? 12.92 * c : 1.055 * Math.max(c, 0) ** (1 / 2.4) - 0.055);

function oklab(colour) {
  const [r, g, b] = colour.map((c) => toLinear(c / 255));
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ];
}

function fromOklab([L, a, b]) {
  const l = (L + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (L - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (L - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ].map((c) => 255 * Math.min(Math.max(toGamma(c), 0), 1));
}

/** The blend of RGB colours by shares that need not sum to 1. */
export function blend(colours, shares) {
  const total = shares.reduce((sum, share) => sum + share, 0);
  if (!(total > 0)) return isDark() ? [90, 98, 106] : [200, 198, 192];
  const mixed = [0, 0, 0];
  colours.forEach((colour, index) => {
    oklab(colour).forEach((part, axis) => (mixed[axis] += (part * shares[index]) / total));
  });
  return fromOklab(mixed);
}

export const mix = (from, to, share) => blend([from, to], [1 - share, share]);

/** The colour of weights: the objectives' colours in those shares. */
export const weightsColour = (weights) =>
  blend(objectiveColours(weights.length).map(rgb), weights);

/** Regret from none (0) to the most (1). */
export function regretColour(share) {
  const none = isDark() ? rgb('#2b3138') : rgb('#f1ede4');
  const most = isDark() ? rgb('#ff8a5c') : rgb('#b3380a');
  return mix(none, most, Math.min(Math.max(share, 0), 1) ** 0.8);
}

/** A difference from -1 (the second is better) to 1 (the first is better). */
export function differenceColour(share) {
  const none = isDark() ? rgb('#2b3138') : rgb('#f1ede4');
  const side = rgb(sideColours()[share > 0 ? 0 : 1]);
  return mix(none, side, Math.min(Math.abs(share), 1) ** 0.8);
}
