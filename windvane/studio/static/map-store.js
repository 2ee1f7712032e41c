// Fetches the maps of policies and keeps them; polls while one is being computed.

import { request } from './connection.js';
import { listen, policyOf } from './state.js';

const kept = new Map();

export const mapOf = (id) => kept.get(id) ?? null;

/** Call `onUpdate` with every answer until the map is done, has failed or `signal` aborts. */
export async function watchMap(id, onUpdate, signal, every = 400) {
  if (kept.has(id)) {
    onUpdate(kept.get(id));
    return;
  }
  while (!signal.aborted) {
    let map;
    try {
      map = await request(`/api/policies/${encodeURIComponent(id)}/map`);
    } catch (error) {
      map = { state: 'failed', problem: error.message };
    }
    if (signal.aborted) return;
    if (map.state === 'done') {
      kept.set(id, map);
    }
    onUpdate(map);
    if (map.state !== 'running') return;
    await new Promise((resolve) => setTimeout(resolve, every));
  }
}

// A policy that trains on will act differently: its map is not kept.
listen('library', () => {
  for (const id of kept.keys()) if (policyOf(id)?.state === 'training') kept.delete(id);
});
