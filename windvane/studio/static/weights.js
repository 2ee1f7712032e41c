// Arithmetic of weights: points of the simplex, their words and their numbers.

/** The nearest point of the simplex. */
export function project(values) {
  const sorted = [...values].sort((a, b) => b - a);
  let sum = 0;
  let shift = 0;
  sorted.forEach((value, index) => {
    sum += value;
    const candidate = (sum - 1) / (index + 1);
    if (value > candidate) shift = candidate;
  });
  return exact(values.map((value) => Math.max(value - shift, 0)));
}

/** The same weights with six digits, whose sum is 1. */
export function exact(values) {
  const total = values.reduce((sum, value) => sum + value, 0) || 1;
  const rounded = values.map((value) => Math.round((value / total) * 1e6) / 1e6);
  const largest = rounded.indexOf(Math.max(...rounded));
  const others = rounded.reduce((sum, value, index) => sum + (index === largest ? 0 : value), 0);
  rounded[largest] = Math.round((1 - others) * 1e6) / 1e6;
  return rounded;
}

/** Set one weight; the others keep their proportions. */
export function rescale(values, index, value) {
  const others = values.reduce((sum, v, i) => sum + (i === index ? 0 : v), 0);
  const rest = 1 - value;
  return exact(values.map((v, i) => {
    if (i === index) return value;
    return others > 1e-9 ? (v / others) * rest : rest / (values.length - 1);
  }));
}

export const corner = (count, index) => Array.from({ length: count }, (_, i) => (i === index ? 1 : 0));
export const centre = (count) => exact(Array(count).fill(1 / count));

/** Whole percents that sum to 100. */
export function percents(values) {
  const whole = values.map((value) => Math.floor(value * 100 + 1e-6));
  const order = values.map((value, i) => [value * 100 - whole[i], i]).sort((a, b) => b[0] - a[0]);
  let missing = 100 - whole.reduce((sum, value) => sum + value, 0);
  for (const [, index] of order) {
    if (missing <= 0) break;
    whole[index] += 1;
    missing -= 1;
  }
  return whole;
}

/** What one drags to choose so many weights. */
export const handleOf = (count) => ({ 2: 'slider', 3: 'point' })[count] ?? 'sliders';

/** Weights in words, such as "ore 1 20%, ore 2 30%, fuel 50%". */
export const inWords = (objectives, values) =>
  percents(values).map((percent, index) => `${objectives[index]} ${percent}%`).join(', ');

/** A number with sensible digits, and a true minus sign. */
export function number(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return '–';
  const size = Math.abs(value);
  let text;
  if (size < 5 * 10 ** -digits) text = size < 1e-9 ? '0' : value.toFixed(digits);
  else if (size >= 1000) text = Math.round(value).toLocaleString('en');
  else text = value.toFixed(Math.max(0, Math.min(digits, digits - Math.floor(Math.log10(Math.max(size, 1))) - 1)));
  if (/^-0(\.0*)?$/.test(text)) text = text.slice(1);
  return text.replace('-', '−');
}

/** Whether there is a number at all. */
export const isKnown = (value) => Number.isFinite(value);

/** A count in short, such as 17.8 M. */
export function count(value) {
  if (value >= 1e6) return `${Number((value / 1e6).toPrecision(3))} M`;
  return value >= 1e4 ? `${Math.round(value / 1e3)} k` : Math.round(value).toLocaleString('en');
}
