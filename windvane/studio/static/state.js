// What the page knows, and how its parts tell each other: one object and one event target.
// Nothing here touches the document or the network.

export const state = {
  library: null,
  policy: null, // id of the chosen policy
  pair: [null, null], // ids of the compared policies
  weights: null,
  playing: null, // "sparse" | "regular" | "sequence" | null
  lanes: [],
  secondsPerStep: 0.125,
  unit: '',
  paused: false,
  watched: true, // whether the view on the page shows the agent at work
  run: null, // id of the chosen run
  pace: 8,
};

/** Plain counters for measurements; the page's only global. */
export const counters = { framesDrawn: 0, stepsReceived: 0, lastDecision: null };
window.__studio = counters;

const bus = new EventTarget();

export const emit = (type, detail) => bus.dispatchEvent(new CustomEvent(type, { detail }));

/** Listen until `signal` aborts. */
export function listen(type, listener, signal) {
  bus.addEventListener(type, (event) => listener(event.detail), { signal });
}

export const policyOf = (id) => state.library?.policies.find((policy) => policy.id === id) ?? null;

/** Objectives of what is shown: those of the open lanes, or of the chosen policy. */
export const objectives = () => state.lanes[0]?.objectives ?? policyOf(state.policy)?.objectives ?? [];

/** Somebody chose weights on this page. */
export function chooseWeights(values, held = false) {
  state.weights = values;
  emit('weights', { values, from: 'person', held });
}
