// The only module that talks to the server: JSON requests, and one socket that reconnects by itself.

import { counters, emit, listen, state } from './state.js';

let socket = null;
let wanted = null; // the policies that shall be open
let retry = 0;
let pending = null; // weights that wait for the next frame
let refused = false; // the server wants another token
let chosenAt = -Infinity; // when a person last chose weights

const PERSON_FIRST = 400; // milliseconds

/** GET or POST JSON; an Error carries the server's sentence. */
export async function request(path, body) {
  const options = body === undefined ? {} : {
    method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body),
  };
  let response;
  try {
    response = await fetch(path, { credentials: 'same-origin', ...options });
  } catch {
    throw new Error('The server does not answer.');
  }
  if (response.status === 403) {
    refused = true;
    emit('forbidden');
    throw new Error('This page needs the link that windvane studio printed.');
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(answer.problem ?? `The server answered with ${response.status}.`);
  return answer;
}

export function send(message) {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
}

/** Hear from the server, about the library for instance, though nothing plays. */
export function stayConnected() {
  if (!socket) connect();
}

/** Open one policy, or two to compare. */
export function openPolicies(policies) {
  wanted = policies;
  const open = state.lanes.map((lane) => lane.policy);
  if (socket?.readyState === WebSocket.OPEN) {
    // What is open already plays on.
    if (open.join() !== policies.join()) sendOpen();
  } else if (!socket) connect();
}

function sendOpen() {
  pending = null;
  const policy = state.library?.policies.find((entry) => entry.id === wanted[0]);
  const fits = state.weights && policy && state.weights.length === policy.objectives.length;
  send({ type: 'open', policies: wanted, weights: fits ? state.weights : null, seed: 0 });
  send({ type: 'pace', steps_per_second: state.pace });
}

function connect() {
  const url = new URL('/ws', location.href);
  url.protocol = url.protocol.replace('http', 'ws');
  socket = new WebSocket(url);
  socket.binaryType = 'arraybuffer';
  socket.addEventListener('open', () => {
    retry = 0;
    emit('link', 'open');
    if (wanted) sendOpen();
  });
  socket.addEventListener('message', (event) => {
    if (event.data instanceof ArrayBuffer) receivePicture(event.data);
    else receive(JSON.parse(event.data));
  });
  socket.addEventListener('close', () => {
    socket = null;
    state.lanes = [];
    emit('link', 'closed');
    retry += 1;
    setTimeout(async () => {
      // A refused cookie closes the socket without saying why; a request tells.
      await request('/api/library').catch(() => {});
      if (!refused) connect();
    }, Math.min(400 * 1.7 ** retry, 8000));
  });
}

function receive(message) {
  if (message.type === 'opened') {
    state.lanes = message.lanes;
    state.weights = message.weights;
    state.secondsPerStep = message.seconds_per_step;
    state.unit = message.unit ?? '';
    state.playing = null;
    send({ type: 'pause', on: state.paused || !state.watched });
  } else if (message.type === 'step') counters.stepsReceived += 1;
  else if (message.type === 'decision') counters.lastDecision = message;
  else if (message.type === 'weights') {
    // What a person has just chosen wins over what was on its way.
    if (pending || performance.now() - chosenAt < PERSON_FIRST) return;
    state.weights = message.values;
    state.playing = message.playing ?? null;
    emit('weights', { values: message.values, from: 'server', held: false });
    return;
  }
  emit(message.type, message);
}

function receivePicture(buffer) {
  const view = new DataView(buffer);
  emit('picture', {
    lane: view.getUint8(0), step: view.getUint32(1),
    blob: new Blob([new Uint8Array(buffer, 5)], { type: 'image/jpeg' }),
  });
}

// Weights that a person chooses go out once per frame, the latest only.
listen('weights', ({ values, from }) => {
  if (from !== 'person') return;
  if (pending === null) {
    requestAnimationFrame(() => {
      if (pending) send({ type: 'weights', values: pending });
      pending = null;
    });
  }
  pending = values;
  chosenAt = performance.now();
  // The server ends a market or a sequence when weights come.
  if (state.playing) {
    state.playing = null;
    emit('playing', null);
  }
});

