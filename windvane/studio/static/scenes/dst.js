// Deep Sea Treasure as a cut through the sea: sky, water that darkens, a sandy floor, chests with
// their values, and a submarine that leaves bubbles.

import { css, isDark, objectiveColour, weightsColour } from '../colours.js';
import { number } from '../weights.js';
import { backdrop, chance, ease, ring } from './drawing.js';

const SKY = 1.3; // rows of sky above the sea
const GROUND = 0.4; // rows of sea floor below the map

const palette = () => (isDark()
  ? {
    sky: ['#141b26', '#26364a'], disc: '#e9e4d0', glow: 'rgb(233 228 208 / 0.14)',
    sea: ['#1f5872', '#143a55', '#0c2138'], ray: 'rgb(255 255 255 / 0.03)',
    sand: ['#4a4438', '#2b2823'], cap: '#6b6250', hull: '#f0e9d8', dark: '#0d1a26',
  }
  : {
    sky: ['#cfe6f2', '#f6efdd'], disc: '#f7d67a', glow: 'rgb(247 214 122 / 0.35)',
    sea: ['#79c3d6', '#2f86ad', '#174f7d'], ray: 'rgb(255 255 255 / 0.1)',
    sand: ['#dcc592', '#b39a68'], cap: '#efdcae', hull: '#fffaf0', dark: '#27404f',
  });

export function createSea(spec) {
  const map = spec.map;
  const rows = map.length;
  const columns = map[0].length;
  const back = backdrop((context, width, height) => drawBack(context, width, height, map));
  let from = [0, 0];
  let to = [0, 0];
  let start = 0;
  let lasts = 0;
  let facing = 1;
  let bow = 1;
  let spots = [];
  let found = null;
  let seen = false;

  const at = (now) => {
    const t = lasts > 0 ? ease(Math.min(Math.max((now - start) / lasts, 0), 1)) : 1;
    return [from[0] + (to[0] - from[0]) * t, from[1] + (to[1] - from[1]) * t];
  };
  return {
    aspect: columns / (rows + SKY + GROUND),
    ready: () => seen,
    stale: () => back.stale(),
    step(message, now, duration) {
      if (!message.cell) return;
      if (message.step === 0) {
        spots = [];
        from = message.cell;
        facing = 1;
      } else from = seen ? at(now) : message.cell;
      to = message.cell;
      if (Math.abs(to[1] - from[1]) > 0.05) facing = Math.sign(to[1] - from[1]);
      start = now;
      lasts = duration;
      if (message.reward?.[0] > 0 && message.step) found = { value: message.reward[0], cell: to, time: now };
      seen = true;
    },
    draw(context, size, now, { weights, calm }) {
      back.draw(context, size);
      const cell = size.width / columns;
      const top = cell * SKY;
      drawWaves(context, size.width, top, cell, calm ? 0 : now);
      const [row, column] = at(now);
      const colour = weights.length ? css(weightsColour(weights)) : '#fff';
      const last = spots.at(-1);
      if (seen && (!last || Math.hypot(last.row - row, last.column - column) > 0.22)) {
        spots.push({ row, column, colour });
      }
      spots.slice(-160).forEach((spot, i, all) => {
        context.globalAlpha = 0.15 + 0.75 * ((i + 1) / all.length) ** 1.5;
        context.fillStyle = spot.colour;
        context.strokeStyle = 'rgb(255 255 255 / 0.7)';
        context.lineWidth = 1;
        context.beginPath();
        context.arc((spot.column + 0.5) * cell, top + (spot.row + 0.5) * cell, cell * (0.06 + 0.025 * (i % 3)), 0,
          Math.PI * 2);
        context.fill();
        context.stroke();
      });
      context.globalAlpha = 1;
      bow = calm ? facing : bow + (facing - bow) * 0.22;
      const bob = calm ? 0 : Math.sin(now / 620) * cell * 0.025;
      drawSubmarine(context, (column + 0.5) * cell, top + (row + 0.52) * cell + bob, cell, bow, calm ? 0 : now);
      if (found && now - found.time < 2000) drawFound(context, found, cell, top, now);
    },
  };
}

function drawBack(context, width, height, map) {
  const colours = palette();
  const columns = map[0].length;
  const cell = width / columns;
  const top = cell * SKY;
  const sky = context.createLinearGradient(0, 0, 0, top);
  colours.sky.forEach((colour, i) => sky.addColorStop(i, colour));
  context.fillStyle = sky;
  context.fillRect(0, 0, width, top + 2);
  const [sunX, sunY] = [cell * 1.1, top * 0.5];
  context.fillStyle = colours.glow;
  context.beginPath();
  context.arc(sunX, sunY, cell * 0.48, 0, Math.PI * 2);
  context.fill();
  context.fillStyle = colours.disc;
  context.beginPath();
  context.arc(sunX, sunY, cell * 0.28, 0, Math.PI * 2);
  context.fill();
  const sea = context.createLinearGradient(0, top, 0, height);
  colours.sea.forEach((colour, i) => sea.addColorStop(i / 2, colour));
  context.fillStyle = sea;
  context.fillRect(0, top, width, height - top);
  context.fillStyle = colours.ray;
  for (const [x, wide] of [[0.16, 0.07], [0.34, 0.1], [0.62, 0.06], [0.8, 0.12]]) {
    context.beginPath();
    context.moveTo(width * x, top);
    context.lineTo(width * (x + wide), top);
    context.lineTo(width * (x + wide * 2.2 + 0.12), height);
    context.lineTo(width * (x + 0.06), height);
    context.fill();
  }
  drawFloor(context, map, cell, top, height, colours);
  map.forEach((line, row) => line.forEach((value, column) => {
    if (value > 0) drawChest(context, (column + 0.5) * cell, top + (row + 1) * cell, cell, value);
  }));
}

function drawFloor(context, map, cell, top, height, colours) {
  const sand = context.createLinearGradient(0, top, 0, height);
  sand.addColorStop(0, colours.sand[0]);
  sand.addColorStop(1, colours.sand[1]);
  const solid = (row, column) => row >= map.length || (map[row]?.[column] ?? 0) < 0;
  const random = chance(11);
  const floor = [...map, map[0].map(() => -1)];
  floor.forEach((line, row) => line.forEach((value, column) => {
    if (value >= 0) return;
    const [x, y] = [column * cell, top + row * cell];
    const open = !solid(row - 1, column);
    const corner = cell * 0.3;
    const left = open && column > 0 && !solid(row, column - 1) ? corner : 0;
    const right = open && column < line.length - 1 && !solid(row, column + 1) ? corner : 0;
    context.fillStyle = sand;
    context.beginPath();
    context.roundRect(x - 0.5, y, cell + 1, cell + 1, [left, right, 0, 0]);
    context.fill();
    if (open) {
      context.fillStyle = colours.cap;
      context.beginPath();
      context.roundRect(x - 0.5, y, cell + 1, cell * 0.14, [left, right, cell * 0.06, cell * 0.06]);
      context.fill();
    }
    if (random() < 0.4) {
      context.fillStyle = 'rgb(0 0 0 / 0.07)';
      ring(context, x + cell * (0.25 + random() * 0.5), y + cell * (0.4 + random() * 0.4),
        cell * (0.05 + random() * 0.06), row * 31 + column, 0.1);
      context.fill();
    }
  }));
}

function drawChest(context, x, bottom, cell, value) {
  if (cell < 16) {
    context.fillStyle = objectiveColour(0);
    context.fillRect(x - cell * 0.3, bottom - cell * 0.6, cell * 0.6, cell * 0.6);
    return;
  }
  const [w, h] = [cell * 0.62, cell * 0.36];
  const glow = context.createRadialGradient(x, bottom - h, 0, x, bottom - h, cell * 0.5);
  glow.addColorStop(0, 'rgb(255 214 110 / 0.5)');
  glow.addColorStop(1, 'rgb(255 214 110 / 0)');
  context.fillStyle = glow;
  context.fillRect(x - cell * 0.5, bottom - cell, cell, cell);
  context.fillStyle = '#7a4b2a';
  context.beginPath();
  context.roundRect(x - w / 2, bottom - h, w, h, [cell * 0.03, cell * 0.03, cell * 0.07, cell * 0.07]);
  context.fill();
  context.fillStyle = '#f5c542';
  context.beginPath();
  context.ellipse(x, bottom - h, w * 0.44, cell * 0.1, 0, Math.PI, 0);
  context.fill();
  context.fillStyle = '#96602f';
  context.fillRect(x - w / 2, bottom - h, w, cell * 0.055);
  const label = number(value).replace(/\.0+$/, '');
  context.font = `700 ${cell * (label.length > 3 ? 0.23 : 0.26)}px ui-sans-serif, system-ui, "DejaVu Sans", sans-serif`;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  context.fillStyle = '#fff3d0';
  context.fillText(label, x, bottom - h * 0.42);
}

function drawWaves(context, width, top, cell, now) {
  for (const [shift, alpha, rise] of [[0, 0.5, 0.06], [1.9, 0.28, 0.09]]) {
    context.strokeStyle = `rgb(255 255 255 / ${alpha})`;
    context.lineWidth = Math.max(cell * 0.045, 1);
    context.beginPath();
    for (let x = 0; x <= width; x += 5) {
      const y = top + cell * 0.04 + shift + Math.sin(x / (cell * 0.42) + now / 900 + shift) * cell * rise * 0.6;
      if (x === 0) context.moveTo(x, y);
      else context.lineTo(x, y);
    }
    context.stroke();
  }
}

function drawSubmarine(context, x, y, cell, bow, now) {
  const colours = palette();
  context.save();
  context.translate(x, y);
  context.scale(Math.abs(bow) < 0.15 ? 0.15 * (Math.sign(bow) || 1) : bow, 1);
  const light = context.createLinearGradient(cell * 0.3, 0, cell * 1.5, 0);
  light.addColorStop(0, 'rgb(255 240 180 / 0.5)');
  light.addColorStop(1, 'rgb(255 240 180 / 0)');
  context.fillStyle = light;
  context.beginPath();
  context.moveTo(cell * 0.36, 0);
  context.lineTo(cell * 1.5, -cell * 0.34);
  context.lineTo(cell * 1.5, cell * 0.4);
  context.fill();
  const blade = Math.abs(Math.sin(now / 70)) * 0.16 + 0.04;
  context.fillStyle = colours.dark;
  context.beginPath();
  context.ellipse(-cell * 0.44, cell * 0.02, cell * 0.035, cell * blade, 0, 0, Math.PI * 2);
  context.fill();
  context.fillRect(-cell * 0.44, -cell * 0.005, cell * 0.12, cell * 0.05);
  context.fillStyle = '#d9603f';
  context.beginPath();
  context.roundRect(-cell * 0.13, -cell * 0.33, cell * 0.25, cell * 0.2, cell * 0.06);
  context.fill();
  context.lineWidth = cell * 0.05;
  context.strokeStyle = '#d9603f';
  context.beginPath();
  context.moveTo(0, -cell * 0.3);
  context.lineTo(0, -cell * 0.44);
  context.lineTo(cell * 0.09, -cell * 0.44);
  context.stroke();
  context.fillStyle = colours.hull;
  context.beginPath();
  context.ellipse(0, 0, cell * 0.4, cell * 0.21, 0, 0, Math.PI * 2);
  context.fill();
  context.save();
  context.clip();
  context.fillStyle = '#d9603f';
  context.fillRect(-cell * 0.5, cell * 0.08, cell, cell * 0.2);
  context.restore();
  for (const hole of [-0.17, 0.02, 0.2]) {
    context.fillStyle = colours.dark;
    context.beginPath();
    context.arc(cell * hole, -cell * 0.02, cell * 0.062, 0, Math.PI * 2);
    context.fill();
    context.fillStyle = '#ffe39a';
    context.beginPath();
    context.arc(cell * hole, -cell * 0.02, cell * 0.04, 0, Math.PI * 2);
    context.fill();
  }
  context.restore();
}

function drawFound(context, found, cell, top, now) {
  const t = (now - found.time) / 2000;
  context.globalAlpha = Math.min(1, (1 - t) * 2.5);
  context.font = `800 ${Math.max(cell * 0.42, 14)}px ui-sans-serif, system-ui, "DejaVu Sans", sans-serif`;
  context.textAlign = 'center';
  context.fillStyle = '#ffe08a';
  context.strokeStyle = 'rgb(10 25 40 / 0.7)';
  context.lineWidth = 3;
  const text = `+${number(found.value)}`;
  // On a small stage the words are wider than the first column.
  const x = Math.max((found.cell[1] + 0.5) * cell, context.measureText(text).width / 2 + 4);
  const y = top + (found.cell[0] - 0.1 - ease(Math.min(t * 1.6, 1)) * 0.5) * cell;
  context.strokeText(text, x, y);
  context.fillText(text, x, y);
  context.globalAlpha = 1;
}
