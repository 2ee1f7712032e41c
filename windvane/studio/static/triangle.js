// The triangle of three weights: a point that can be dragged or moved with keys, over an optional map.
// Used as the weights control and for every map of three objectives.

import { svg, set } from './dom.js';
import { css, objectiveColour, weightsColour } from './colours.js';
import { centre, corner, exact, inWords, percents, project } from './weights.js';

export const BOX = { width: 340, height: 316 };
const CORNERS = [[26, 274], [314, 274], [170, 24.6]];
const TRAIL_SECONDS = 5;
const GRID = [0.25, 0.5, 0.75];

export const place = (w) => [0, 1].map((axis) => CORNERS.reduce((sum, c, i) => sum + c[axis] * w[i], 0));

/** Barycentric coordinates of a point of the box; outside the triangle some are negative. */
export function barycentric(x, y) {
  const [[x0, y0], [x1, y1], [x2, y2]] = CORNERS;
  const whole = (y1 - y2) * (x0 - x2) + (x2 - x1) * (y0 - y2);
  const a = ((y1 - y2) * (x - x2) + (x2 - x1) * (y - y2)) / whole;
  const b = ((y2 - y0) * (x - x2) + (x0 - x2) * (y - y2)) / whole;
  return [a, b, 1 - a - b];
}

/** A name for which a corner has room. */
const inShort = (name) => (name.length > 12 ? `${name.slice(0, 10).trimEnd()}…` : name);

let made = 0;

/**
 * @param options objectives, onInput(weights, held), onHover(weights|null), label, testid, pointTestid
 */
export function createTriangle(host, options) {
  const { objectives, onInput, onHover, label = 'Weights', testid, pointTestid } = options;
  const id = `triangle-${(made += 1)}`;
  let weights = centre(3);
  let held = false;
  let trail = [];
  let timer = 0;

  const outline = `M${CORNERS.map((c) => c.join(' ')).join('L')}Z`;
  const ground = svg('path', { d: outline, class: 'tri-ground' });
  const image = svg('image', {
    x: 0, y: 0, width: BOX.width, height: BOX.height, 'clip-path': `url(#${id})`, class: 'tri-image',
  });
  const grid = GRID.flatMap((share) => [0, 1, 2].map((i) => {
    const end = (step) => corner(3, (i + step) % 3).map((v, k) => (k === i ? share : v * (1 - share)));
    const ends = [1, 2].map((step) => place(end(step)));
    return svg('path', { d: `M${ends.map((e) => e.join(' ')).join('L')}`, class: 'tri-grid' });
  }));
  const trailGroup = svg('g', { class: 'tri-trail' });
  const spokes = CORNERS.map((_, i) => svg('line', { class: 'tri-spoke', 'data-objective': i }));
  const halo = svg('circle', { r: 19, class: 'point-halo' });
  const dot = svg('circle', { r: 10.5, class: 'point-dot' });
  const point = svg('g', {
    class: 'point', tabindex: 0, role: 'slider', 'aria-roledescription': 'point in a triangle',
    'aria-label': `${label}. Arrow keys move, 1 to 3 go to a corner, 0 to the centre.`,
    'aria-valuemin': 0, 'aria-valuemax': 100, 'data-testid': pointTestid,
  }, svg('circle', { r: 26, class: 'point-target' }), halo, dot);
  const anchors = ['start', 'end', 'middle'];
  const labels = CORNERS.map(([x, y], i) => svg('g', { class: 'tri-label' },
    svg('title', { text: objectives[i] }),
    svg('circle', { r: 5, cx: i === 0 ? x - 8 : i === 1 ? x + 8 : x, cy: i === 2 ? y - 1 : y + 24 }),
    svg('text', {
      x: i === 0 ? x + 2 : i === 1 ? x - 2 : x + 11, y: i === 2 ? y + 4 : y + 28.5,
      'text-anchor': i === 2 ? 'start' : anchors[i],
    }, svg('tspan', { text: `${inShort(objectives[i])} ` }), svg('tspan', { class: 'tri-share' }))));
  const node = svg('svg', {
    viewBox: `0 0 ${BOX.width} ${BOX.height}`, class: 'triangle', 'data-testid': testid,
    role: 'group', 'aria-label': label,
  },
  svg('defs', {}, svg('clipPath', { id }, svg('path', { d: outline }))),
  ground, image, grid, svg('path', { d: outline, class: 'tri-edge' }), spokes, trailGroup, labels, point);
  host.append(node);

  const toBox = (event) => {
    const area = node.getBoundingClientRect();
    return [((event.clientX - area.left) / area.width) * BOX.width,
      ((event.clientY - area.top) / area.height) * BOX.height];
  };
  const choose = (values, isHeld) => {
    node.classList.remove('invite');
    show(values, !isHeld);
    onInput?.(weights, isHeld);
  };
  node.addEventListener('pointerdown', (event) => {
    if (event.button) return;
    held = true;
    node.setPointerCapture(event.pointerId);
    node.classList.add('held');
    point.focus({ preventScroll: true });
    choose(project(barycentric(...toBox(event))), true);
    event.preventDefault();
  });
  node.addEventListener('pointermove', (event) => {
    const weightsThere = barycentric(...toBox(event));
    if (held) choose(project(weightsThere), true);
    else onHover?.(weightsThere.every((w) => w >= -0.01) ? project(weightsThere) : null);
  });
  node.addEventListener('pointerleave', () => !held && onHover?.(null));
  const release = () => {
    if (!held) return;
    held = false;
    node.classList.remove('held');
    onInput?.(weights, false);
  };
  node.addEventListener('pointerup', release);
  node.addEventListener('pointercancel', release);
  point.addEventListener('keydown', (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return; // the browser's own keys
    const step = event.shiftKey ? 0.1 : 0.02;
    const side = CORNERS[1][0] - CORNERS[0][0];
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    let next = null;
    if (moves[event.key]) {
      const [x, y] = place(weights);
      next = project(barycentric(x + moves[event.key][0] * step * side, y + moves[event.key][1] * step * side));
    } else if ('123'.includes(event.key)) next = corner(3, Number(event.key) - 1);
    else if (event.key === '0') next = centre(3);
    if (!next) return;
    event.preventDefault();
    choose(exact(next), false);
  });

  function show(values, glide = true) {
    weights = values;
    const [x, y] = place(weights);
    point.classList.toggle('glide', glide);
    point.style.transform = `translate(${x}px, ${y}px)`;
    dot.setAttribute('fill', css(weightsColour(weights)));
    const shares = percents(weights);
    set(point, { 'aria-valuenow': shares[0], 'aria-valuetext': inWords(objectives, weights) });
    labels.forEach((group, i) => (group.lastChild.lastChild.textContent = `${shares[i]}%`));
    spokes.forEach((line, i) => set(line, {
      x1: x, y1: y, x2: CORNERS[i][0], y2: CORNERS[i][1], stroke: objectiveColour(i),
      'stroke-opacity': 0.15 + 0.75 * weights[i],
      'stroke-width': 0.75 + 2.25 * weights[i],
    }));
    trail.push({ x, y, time: performance.now(), colour: css(weightsColour(weights)) });
    drawTrail();
  }

  function drawTrail() {
    const now = performance.now();
    trail = trail.filter((spot) => now - spot.time < TRAIL_SECONDS * 1000).slice(-60);
    trailGroup.replaceChildren(...trail.slice(1).map((spot, i) => svg('line', {
      x1: trail[i].x, y1: trail[i].y, x2: spot.x, y2: spot.y, stroke: spot.colour,
      opacity: 0.7 * (1 - (now - spot.time) / (TRAIL_SECONDS * 1000)),
    })));
    clearTimeout(timer);
    if (trail.length > 1) timer = setTimeout(drawTrail, 250);
  }

  function recolour() {
    labels.forEach((group, i) => group.querySelector('circle').setAttribute('fill', objectiveColour(i)));
    trail = [];
    show(weights);
  }
  recolour();

  return {
    node,
    get held() { return held; },
    show,
    recolour,
    /** Lay a picture of the same box under the point; null takes it away. */
    underlay(url, opacity = 1) {
      if (url) set(image, { href: url, opacity });
      else image.removeAttribute('href');
      node.classList.toggle('has-map', Boolean(url));
    },
    /** Draw the eye to the point until it is moved. */
    invite: () => node.classList.add('invite'),
    destroy: () => clearTimeout(timer),
  };
}
