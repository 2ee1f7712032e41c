// What the scenes share: a repeatable source of chance, rounded outlines, and eased motion.

/** Numbers from 0 to 1 that are the same every time, so that scenery does not dance. */
export function chance(seed) {
  let value = seed >>> 0;
  return () => {
    value = (value + 0x6d2b79f5) >>> 0;
    let t = Math.imul(value ^ (value >>> 15), 1 | value);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** A closed, slightly irregular ring around (x, y). */
export function ring(context, x, y, radius, seed, wobble = 0.05) {
  const phase = chance(seed);
  const [p, q, r] = [phase() * 6.3, phase() * 6.3, phase() * 6.3];
  context.beginPath();
  for (let i = 0; i <= 64; i += 1) {
    const angle = (i / 64) * Math.PI * 2;
    const wave = Math.sin(2 * angle + p) * 0.5 + Math.sin(3 * angle + q) * 0.6 + Math.sin(5 * angle + r) * 0.35;
    const far = radius * (1 + wobble * wave);
    const [px, py] = [x + Math.cos(angle) * far, y + Math.sin(angle) * far];
    if (i === 0) context.moveTo(px, py);
    else context.lineTo(px, py);
  }
  context.closePath();
}

/** A small gem: a hexagon with a light facet. */
export function gem(context, x, y, radius, colour, tilt = 0) {
  const corners = Array.from({ length: 6 }, (_, i) => {
    const angle = tilt + (i / 6) * Math.PI * 2;
    return [x + Math.cos(angle) * radius, y + Math.sin(angle) * radius];
  });
  context.beginPath();
  corners.forEach(([px, py], i) => (i ? context.lineTo(px, py) : context.moveTo(px, py)));
  context.closePath();
  context.fillStyle = colour;
  context.fill();
  context.beginPath();
  context.moveTo(x, y);
  for (const i of [3, 4, 5]) context.lineTo(...corners[i]);
  context.closePath();
  context.fillStyle = 'rgb(255 255 255 / 0.32)';
  context.fill();
  context.beginPath();
  context.moveTo(x, y);
  for (const i of [0, 1, 2]) context.lineTo(...corners[i]);
  context.closePath();
  context.fillStyle = 'rgb(0 0 0 / 0.13)';
  context.fill();
}

export const ease = (t) => (t < 0.5 ? 2 * t * t : 1 - (2 - 2 * t) ** 2 / 2);

/** The turn from one angle to another, in degrees, the short way. */
export const turn = (from, to) => ((((to - from) % 360) + 540) % 360) - 180;

/** A picture that is drawn once and kept until it is stale or of another size. */
export function backdrop(paint) {
  let kept = null;
  let key = '';
  return {
    stale: () => (key = ''),
    draw(context, { width, height }) {
      const ratio = context.getTransform().a;
      const now = `${width}x${height}@${ratio}`;
      if (now !== key) {
        kept = document.createElement('canvas');
        kept.width = Math.round(width * ratio);
        kept.height = Math.round(height * ratio);
        const inner = kept.getContext('2d');
        inner.scale(ratio, ratio);
        paint(inner, width, height);
        key = now;
      }
      context.drawImage(kept, 0, 0, width, height);
    },
  };
}
