// From the numbers of a map to colours: outcomes blended by normalised return, and smooth pictures
// of a simplex grid.

import { blend, css, isDark, mix, objectiveColours, rgb, surface } from './colours.js';
import { BOX, barycentric } from './triangle.js';

/** Ranges of each objective over all rows of all maps; rows that never end do not count. */
export function ranges(lists, objectives) {
  return Array.from({ length: objectives }, (_, i) => {
    const values = lists.flat().filter(Boolean).map((row) => row[i]).filter(Number.isFinite);
    return values.length ? [Math.min(...values), Math.max(...values)] : [0, 1];
  });
}

/** The colour of returns: the objectives' colours, blended by how much of each was reached. */
export function outcomeColour(returns, spans) {
  if (!returns || returns.some((value) => !Number.isFinite(value))) return null;
  const reached = returns.map((value, i) => {
    const [low, high] = spans[i];
    return high - low < 1e-9 ? 0.5 : Math.min(Math.max((value - low) / (high - low), 0), 1);
  });
  const shares = reached.map((share) => share ** 1.6);
  const colour = blend(objectiveColours(returns.length).map(rgb), shares);
  // What reaches little of anything is pale.
  return mix(surface(), colour, 0.35 + 0.65 * Math.max(...reached));
}

/** Colours of both maps, under one normalisation. */
export function outcomeColours(map) {
  const spans = ranges([map.returns.filter((_, i) => !map.never_ends?.[i]), map.optimal?.returns ?? []],
    map.objectives.length);
  return {
    spans,
    agent: map.returns.map((row) => outcomeColour(row, spans)),
    optimal: map.optimal?.returns.map((row) => outcomeColour(row, spans)) ?? null,
  };
}

/** The row of weights (i, j, rest) / resolution in lexicographic order. */
export const gridRow = (resolution, i, j) => i * (resolution + 1) - (i * (i - 1)) / 2 + j;

/** The row of the map that is nearest to `weights`. */
export function nearestRow(map, weights) {
  let best = 0;
  let least = Infinity;
  map.weights.forEach((row, index) => {
    let distance = 0;
    for (let i = 0; i < row.length; i += 1) distance += (row[i] - weights[i]) ** 2;
    if (distance < least) [least, best] = [distance, index];
  });
  return best;
}

/** Groups of rows whose colours look the same; rows that never end are groups of their own. */
function alike(colours, hatched) {
  const groups = [];
  return colours.map((colour, row) => {
    const never = Boolean(hatched[row]);
    const same = groups.findIndex((group) => group.never === never
      && Math.hypot(...group.colour.map((c, k) => c - colour[k])) < 14);
    return same >= 0 ? same : groups.push({ colour, never }) - 1;
  });
}

/**
 * A picture of a simplex grid for the triangle's box, as a data URL. The grid points around a pixel
 * vote with a weight that falls with distance, and groups of one colour vote together: borders
 * between behaviours come out as smooth lines rather than as steps of the grid.
 */
export function trianglePicture(resolution, given, hatched = []) {
  const scale = 1.4;
  const [width, height] = [Math.round(BOX.width * scale), Math.round(BOX.height * scale)];
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [width, height];
  const context = canvas.getContext('2d');
  const picture = context.createImageData(width, height);
  const dull = isDark() ? [58, 66, 74] : [222, 218, 208];
  const lines = isDark() ? [104, 114, 124] : [176, 170, 156];
  const colours = given.map((colour) => colour ?? dull);
  const groups = alike(colours, hatched);
  const votes = new Float64Array(Math.max(...groups) + 1);
  const never = [];
  groups.forEach((group, row) => (never[group] = Boolean(hatched[row])));
  const near = [];
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const [a, b, c] = barycentric((x + 0.5) / scale, (y + 0.5) / scale);
      if (Math.min(a, b, c) < -0.02) continue;
      near.length = 0;
      const [u, v] = [a * resolution, b * resolution];
      for (let i = Math.max(Math.round(u) - 2, 0); i <= Math.min(Math.round(u) + 2, resolution); i += 1) {
        for (let j = Math.max(Math.round(v) - 2, 0); j <= Math.min(Math.round(v) + 2, resolution - i); j += 1) {
          const [p, q] = [i - u, j - v];
          near.push(gridRow(resolution, i, j), Math.exp(-1.5 * (p * p + q * q + p * q)));
        }
      }
      for (let k = 0; k < near.length; k += 2) votes[groups[near[k]]] += near[k + 1];
      let [total, red, green, blue, hatch] = [0, 0, 0, 0, 0];
      for (let k = 0; k < near.length; k += 2) {
        const group = groups[near[k]];
        const share = near[k + 1] * votes[group] ** 5;
        const colour = colours[near[k]];
        total += share;
        red += share * colour[0];
        green += share * colour[1];
        blue += share * colour[2];
        if (never[group]) hatch += share;
      }
      for (let k = 0; k < near.length; k += 2) votes[groups[near[k]]] = 0;
      const onLine = hatch > total / 2 && (x + y) % 10 < 2;
      const colour = onLine ? lines : [red / total, green / total, blue / total];
      picture.data.set([...colour, 255], 4 * (y * width + x));
    }
  }
  context.putImageData(picture, 0, 0);
  return canvas.toDataURL();
}

/** A picture of the map of two objectives, from all weight on the first to all on the second. */
export function lineOfTwo(map, colours, hatched = map.never_ends ?? []) {
  const order = map.weights.map((row, index) => [row[1], index]).sort((a, b) => a[0] - b[0]).map(([, index]) => index);
  return stripPicture(order.map((i) => colours[i]), order.map((i) => hatched[i]));
}

/** A picture of a strip, one row of colours from left to right. */
export function stripPicture(colours, hatched = []) {
  const cell = 12;
  const height = 48;
  const canvas = document.createElement('canvas');
  canvas.width = Math.max(colours.length * cell, 1);
  canvas.height = height;
  const context = canvas.getContext('2d');
  colours.forEach((colour, index) => {
    context.fillStyle = css(colour ?? (isDark() ? [58, 66, 74] : [222, 218, 208]));
    context.fillRect(index * cell, 0, cell, height);
  });
  context.beginPath();
  hatched.forEach((never, index) => never && context.rect(index * cell, 0, cell, height));
  context.clip();
  context.strokeStyle = isDark() ? '#5c6670' : '#b0aa9c';
  context.lineWidth = 2;
  context.beginPath();
  for (let x = -height; x < canvas.width; x += 10) {
    context.moveTo(x, height);
    context.lineTo(x + height, 0);
  }
  context.stroke();
  return canvas.toDataURL();
}
