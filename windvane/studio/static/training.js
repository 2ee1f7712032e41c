// The view Training: curves of a run, one thin line per seed and their mean; what its replay holds;
// and weights that steer a run while it trains.

import { el, onWidth, svg } from './dom.js';
import { css, isDark, objectiveColour, rgb } from './colours.js';
import { axes, line, widened } from './charts.js';
import { request } from './connection.js';
import { listen, state } from './state.js';
import { createWeightsControl } from './weights-control.js';
import { notice } from './notices.js';
import { centre, count, handleOf } from './weights.js';

const POLL = 2000;
const LEADS = {
  training: 'It is learning right now.', finished: 'How it learned.', stopped: 'It stopped before its end.',
};
const HALVES = [['recent', 'Recent episodes'], ['diverse', 'Diverse episodes']];

export function showTraining(host, signal) {
  const picker = el('select', { 'aria-label': 'Run', on: { change: () => {
    state.run = picker.value;
    chosen = true;
    follow();
  } } });
  let chosen = state.run !== null; // by the person: then no other run takes its place
  const lead = el('h1', { class: 'lead' });
  const step = el('p', { class: 'training-step', 'data-testid': 'training-step', role: 'status' });
  const bar = el('progress', { max: 1, 'aria-label': 'Progress of the training' });
  const curves = el('div', { class: 'curves', 'data-testid': 'training-curves' });
  const steering = el('section', { class: 'steering', 'aria-label': 'Steer the training' });
  const content = el('section', { class: 'content', 'aria-label': 'What the replay buffer holds' });
  const notes = el('ul', { class: 'notes quiet' });
  const wide = el('div', { class: 'training-main' }, curves, content, notes);
  host.append(el('div', { class: 'view-head row-between' }, lead,
    el('label', { class: 'picker' }, el('span', { class: 'hidden', text: 'Run' }), picker)),
    el('div', { class: 'training-progress' }, bar, step), el('div', { class: 'training' }, wide, steering));
  let run = null;
  let inner = null;

  /** Offer the runs there are now; one that trains comes first until somebody chooses. */
  function offer() {
    const runs = state.library.runs;
    const best = runs.find((one) => one.state === 'training') ?? runs[0];
    const before = state.run;
    const gone = !runs.some((one) => one.id === state.run);
    const better = !chosen && best.state === 'training' && run?.state !== 'training';
    if (gone || better) state.run = best.id;
    picker.replaceChildren(...runs.map((one) => el('option', {
      value: one.id, selected: one.id === state.run,
      text: `${one.name} · ${one.agent_label} on ${one.env_label}${one.state === 'training' ? ' (training)' : ''}`,
    })));
    if (state.run !== before || run === null) follow();
  }

  async function follow() {
    inner?.abort();
    inner = new AbortController();
    const mine = inner.signal;
    steering.replaceChildren();
    let control = null;
    while (!mine.aborted && !signal.aborted) {
      try {
        run = await request(`/api/runs/${encodeURIComponent(state.run)}`);
      } catch (error) {
        notice(error.message);
        return;
      }
      if (mine.aborted || signal.aborted) return;
      show();
      if (run.steerable && !control) control = steer(mine);
      steering.hidden = !run.steerable;
      if (run.state !== 'training') return;
      await new Promise((resolve) => setTimeout(resolve, POLL));
    }
  }

  function steer(mine) {
    const handle = handleOf(run.objectives.length);
    const words = el('p', {
      text: `This run listens. Drag the ${handle}, and it trains for these weights from its next episode on.`,
    });
    steering.append(el('h2', { text: 'Steer the training' }), words);
    const id = state.run;
    return createWeightsControl(steering, {
      objectives: run.objectives, signal: mine, label: 'Weights of the training',
      weights: run.weights ?? centre(run.objectives.length),
      onInput: async (weights, held) => {
        if (held) return;
        try {
          await request(`/api/runs/${encodeURIComponent(id)}/weights`, { weights });
          words.textContent = 'The run has these weights now. It trains for them from its next episode on.';
        } catch (error) {
          notice(error.message);
        }
      },
    });
  }

  function show() {
    const training = run.state === 'training';
    lead.textContent = LEADS[run.state] ?? LEADS.finished;
    step.textContent = run.steps ? `Step ${count(run.step)} of ${count(run.steps)}` : `Step ${count(run.step)}`;
    bar.value = run.steps ? run.step / run.steps : 1;
    bar.hidden = !training;
    notes.replaceChildren(...(run.notes ?? []).map((text) => el('li', { text })));
    drawCurves();
    drawContent();
  }

  function drawCurves() {
    if (!run) return;
    const width = curves.clientWidth;
    const kinds = ['utility'];
    if (run.runs.some((one) => one.regret?.some((v) => Number.isFinite(v)))) kinds.push('regret');
    const columns = width > 620 ? kinds.length : 1;
    if (width < 80) return;
    if (!run.runs.some((one) => one.steps.length)) {
      const empty = axes({
        width, height: 260, xRange: [0, run.steps || 1], yRange: [0, 1], xLabel: 'steps', yLabel: 'utility',
        label: 'No episode has ended yet', blank: true,
      });
      empty.plot.append(svg('text', {
        x: width / 2, y: 125, class: 'tick', 'text-anchor': 'middle',
        text: 'The curve begins when the first episodes have ended.',
      }));
      curves.replaceChildren(empty.node);
      return;
    }
    const each = Math.floor((width - 28 * (columns - 1)) / columns);
    curves.replaceChildren(...kinds.map((kind) => drawCurve(run, kind, each)));
  }

  function drawContent() {
    const halves = HALVES.filter(([name]) => run?.content?.[name]?.length);
    content.hidden = !halves.length;
    const width = content.clientWidth; // none while hidden
    if (!halves.length || width < 80) return;
    const columns = width > 560 ? 2 : 1;
    const each = Math.floor((width - 24 * (columns - 1)) / columns);
    content.replaceChildren(el('h2', { text: 'What the replay buffer holds' }), el('div', { class: 'panels' },
      halves.map(([name, title]) => drawScatter(run, run.content[name], title, each))));
  }

  signal.addEventListener('abort', () => inner?.abort());
  onWidth(curves, () => {
    drawCurves();
    if (run) drawContent();
  }, signal);
  listen('theme', () => run && show(), signal);
  listen('library-loaded', () => state.library.runs.length && offer(), signal);
  offer();
  document.documentElement.dataset.ready = 'true';
}

function drawCurve(run, kind, width) {
  const lines = run.runs.filter((one) => one[kind]?.length);
  const allY = lines.flatMap((one) => one[kind]);
  const lastStep = Math.max(...lines.flatMap((one) => one.steps), run.state === 'training' ? 0 : run.step, 1);
  const chart = axes({
    width, height: Math.min(Math.max(Math.round(width * 0.56), 220), 340), xRange: [0, lastStep],
    yRange: kind === 'regret' ? [0, widened(allY)[1]] : widened(allY), xLabel: 'steps', yLabel: kind,
    label: `${kind} over steps, of ${lines.length} ${lines.length === 1 ? 'run' : 'runs'}`,
  });
  const colour = isDark() ? '#8fb8d8' : '#2f6187';
  const look = lines.length > 1 ? { 'stroke-width': 1, opacity: 0.38 } : { 'stroke-width': 2.2 };
  for (const one of lines) {
    chart.plot.append(line(one.steps, one[kind], chart.x, chart.y,
      { stroke: colour, 'stroke-linejoin': 'round', ...look }));
  }
  if (lines.length > 1) {
    const [steps, mean] = meanCurve(lines, kind);
    chart.plot.append(line(steps, mean, chart.x, chart.y,
      { stroke: colour, 'stroke-width': 2.6, 'stroke-linejoin': 'round' }));
  }
  const ends = run.state === 'training' ? lines.map((one) => [one.steps.at(-1), one[kind].at(-1)]) : [];
  for (const [x, y] of ends.filter((end) => Number.isFinite(end[1]))) {
    chart.plot.append(svg('circle', { cx: chart.x(x), cy: chart.y(y), r: 3.5, fill: colour }));
  }
  return chart.node;
}

/** The mean at the steps that every run has reached. */
function meanCurve(lines, kind) {
  const values = lines.map((one) => new Map(one.steps.map((step, i) => [step, one[kind][i]])));
  const steps = lines[0].steps.filter((step) => values.every((known) => Number.isFinite(known.get(step))));
  return [steps, steps.map((step) => values.reduce((sum, known) => sum + known.get(step), 0) / lines.length)];
}

function drawScatter(run, rows, title, width) {
  const both = [...(run.content.recent ?? []), ...(run.content.diverse ?? [])];
  const [i, j] = [0, Math.min(1, run.objectives.length - 1)];
  const chart = axes({
    width, height: Math.min(Math.round(width * 0.72), 300), xRange: widened(both.map((row) => row[i])),
    yRange: widened(both.map((row) => row[j])),
    xLabel: run.objectives[i], yLabel: run.objectives[j], label: `${title}: ${rows.length} returns`,
  });
  const colour = css(rgb(objectiveColour(title.startsWith('Recent') ? 4 : 3)));
  chart.plot.append(...rows.slice(0, 1500).map((row) => svg('circle', {
    cx: chart.x(row[i]), cy: chart.y(row[j]), r: 2.6, fill: colour, opacity: 0.55,
  })));
  return el('figure', { class: 'panel' },
    el('figcaption', { text: `${title} · ${rows.length.toLocaleString('en')}` }), chart.node);
}
