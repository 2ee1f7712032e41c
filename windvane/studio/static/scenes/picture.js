// Any other environment: the pictures that the server sends, as they come.

import { isDark } from '../colours.js';

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
      const aspect = Math.min(Math.max(next.width / next.height, 0.8), 2.2);
      const changed = Math.abs(aspect - scene.aspect) > 0.01;
      scene.aspect = aspect;
      return changed;
    },
    draw(context, { width, height }) {
      context.fillStyle = isDark() ? '#161b1f' : '#e6dfcf';
      context.fillRect(0, 0, width, height);
      if (!bitmap) return;
      const scale = Math.min(width / bitmap.width, height / bitmap.height);
      const [w, h] = [bitmap.width * scale, bitmap.height * scale];
      // Small pixel games stay crisp; everything else is smoothed.
      context.imageSmoothingEnabled = bitmap.width > 100;
      context.imageSmoothingQuality = 'high';
      context.drawImage(bitmap, (width - w) / 2, (height - h) / 2, w, h);
      context.imageSmoothingEnabled = true;
    },
  };
  return scene;
}
