// Any other environment: the pictures that the server sends, as they come.

import { isDark } from '../colours.js';

const BAND = 0.115; // of the width, above the picture, for what the stage writes

export function createPicture() {
  let bitmap = null;
  const scene = {
    aspect: 4 / 3,
    ready: () => bitmap !== null,
    step() {},
    /** Take a new picture; true if the stage must take another shape. */
    picture(next) {
      bitmap?.close();
      bitmap = next;
      const shape = Math.min(Math.max(next.width / next.height, 0.8), 4.5);
      const aspect = 1 / (1 / shape + BAND);
      const changed = Math.abs(aspect - scene.aspect) > 0.01;
      scene.aspect = aspect;
      return changed;
    },
    draw(context, { width, height }) {
      context.fillStyle = isDark() ? '#1d2328' : '#efe9dc';
      context.fillRect(0, 0, width, height);
      if (!bitmap) return;
      const band = BAND * width;
      const scale = Math.min(width / bitmap.width, (height - band) / bitmap.height);
      const [w, h] = [bitmap.width * scale, bitmap.height * scale];
      // Small pixel games stay crisp; everything else is smoothed.
      context.imageSmoothingEnabled = bitmap.width > 100;
      context.imageSmoothingQuality = 'high';
      context.drawImage(bitmap, (width - w) / 2, band + (height - band - h) / 2, w, h);
      context.imageSmoothingEnabled = true;
    },
  };
  return scene;
}
