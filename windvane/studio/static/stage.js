// The stage: a canvas on which a scene plays the steps of one lane, smoothly, at every frame.
// The scenes draw the world; the caption with step and weights is drawn here.

import { el, reducedMotion } from './dom.js';
import { isDark, objectiveColour } from './colours.js';
import { counters, listen, state } from './state.js';
import { percents } from './weights.js';
import { createMinecart } from './scenes/minecart.js';
import { createSea } from './scenes/dst.js';
import { createPicture } from './scenes/picture.js';

const SCENES = { minecart: createMinecart, dst: createSea, picture: createPicture };
const FONT = 'ui-sans-serif, system-ui, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif';

/** @param options lane (its number), signal, testid, caption (whether to write the weights),
 * onShape(aspect) */
export function createStage(host, { lane: index, signal, testid = 'stage', caption = true, onShape }) {
  const canvas = el('canvas', { class: 'stage-canvas', role: 'img', 'aria-label': 'The agent at work', hidden: true });
  const node = el('div', { class: 'stage', 'data-testid': testid }, canvas);
  host.append(node);
  const context = canvas.getContext('2d', { alpha: false });
  let scene = null;
  let lane = null;
  let objectives = [];
  let last = { step: 0, episode: 0 };
  let size = { width: 0, height: 0 };

  const open = () => {
    lane = state.lanes[index];
    if (!lane) return;
    objectives = lane.objectives;
    scene = (SCENES[lane.scene.kind] ?? createPicture)(lane.scene, lane);
    canvas.setAttribute('aria-label', `${lane.name}, in its environment`);
    measure();
  };

  function measure() {
    const aspect = scene?.aspect ?? 1;
    node.style.setProperty('--aspect', aspect);
    onShape?.(aspect);
    const width = node.clientWidth;
    if (!width) return;
    const ratio = Math.min(devicePixelRatio || 1, 2.5);
    size = { width, height: Math.round(width / aspect) };
    canvas.width = Math.round(size.width * ratio);
    canvas.height = Math.round(size.height * ratio);
    scene?.stale?.();
    // A canvas is empty after a change of size: without this, black flashes while the window is dragged.
    if (scene) draw(performance.now());
  }

  listen('opened', open, signal);
  listen('theme', () => scene?.stale?.(), signal);
  listen('step', (message) => {
    if (message.lane !== index || !scene) return;
    last = message;
    scene.step(message, performance.now(), reducedMotion() ? 0 : state.secondsPerStep * 1000);
  }, signal);
  listen('picture', async (message) => {
    if (message.lane !== index || !scene?.picture) return;
    const current = scene;
    const bitmap = await createImageBitmap(message.blob).catch(() => null);
    if (!bitmap || scene !== current) return;
    last = { ...last, step: message.step };
    if (scene.picture(bitmap)) measure();
  }, signal);

  const observer = new ResizeObserver(measure);
  observer.observe(node);

  function frame(now) {
    if (signal.aborted) return;
    requestAnimationFrame(frame);
    if (scene && size.width && !document.hidden) draw(now);
  }

  function draw(now) {
    const ratio = canvas.width / size.width;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const weights = state.weights ?? [];
    scene.draw(context, size, now, { weights, calm: reducedMotion() });
    if (caption) drawCaption(weights);
    canvas.hidden = false;
    if (!scene.ready || scene.ready()) {
      counters.framesDrawn += 1;
      document.documentElement.dataset.ready = 'true';
    }
  }
  requestAnimationFrame(frame);
  signal.addEventListener('abort', () => observer.disconnect());

  function drawCaption(weights) {
    const inset = Math.max(14, size.width * 0.032);
    const unit = Math.min(Math.max(size.width / 46, 10.5), 14);
    const bar = unit * 11;
    const right = size.width - inset;
    const ink = lane.scene.kind !== 'dst' ? (isDark() ? '#cfd3d4' : '#4c4a43') : '#f4f7f9';
    context.save();
    if (lane.scene.kind === 'dst') {
      context.fillStyle = 'rgb(16 24 32 / 0.55)';
      context.beginPath();
      context.roundRect(right - bar - unit * 0.8, inset - unit * 0.9, bar + unit * 1.6,
        unit * (objectives.length > 4 ? 2.9 : 4.2), unit * 0.7);
      context.fill();
    }
    context.font = `600 ${unit}px ${FONT}`;
    context.textBaseline = 'alphabetic';
    context.fillStyle = ink;
    context.textAlign = 'left';
    context.fillText(`step ${last.step ?? 0}`, right - bar, inset + unit * 0.5);
    context.textAlign = 'right';
    context.globalAlpha = 0.75;
    context.font = `400 ${unit}px ${FONT}`;
    context.fillText(`episode ${(last.episode ?? 0) + 1}`, right, inset + unit * 0.5);
    context.globalAlpha = 1;
    const top = inset + unit * 1.15;
    let x = right - bar;
    context.beginPath();
    context.roundRect(x, top, bar, unit * 0.5, unit * 0.25);
    context.clip();
    weights.slice(0, objectives.length).forEach((weight, i) => {
      context.fillStyle = objectiveColour(i);
      context.fillRect(x, top, weight * bar + 0.5, unit * 0.5);
      x += weight * bar;
    });
    context.restore();
    if (objectives.length > 4) return;
    // The percents stand below the bar, evenly, in the order of the objectives.
    context.fillStyle = ink;
    context.font = `500 ${unit * 0.86}px ${FONT}`;
    percents(weights).forEach((share, i, all) => {
      context.textAlign = i === 0 ? 'left' : i === all.length - 1 ? 'right' : 'center';
      context.fillText(`${share}%`, right - bar + (bar * i) / Math.max(all.length - 1, 1), top + unit * 1.5);
    });
  }

  if (state.lanes[index]) open();
  return { node, get last() { return last; } };
}
