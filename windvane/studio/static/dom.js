// Small helpers that build HTML and SVG elements.
// Nothing here sets a style attribute: the page's Content-Security-Policy forbids it.

const SVG = 'http://www.w3.org/2000/svg';

/** An HTML element; `on` holds listeners, `text` its text, everything else is an attribute. */
export function el(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** An SVG element. */
export function svg(tag, props = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === 'on') {
      for (const [type, listener] of Object.entries(value)) node.addEventListener(type, listener);
    } else if (name === 'text') node.textContent = value;
    else node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

/** Change attributes of an existing element. */
export function set(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
}

export const reducedMotion = () => matchMedia('(prefers-reduced-motion: reduce)').matches;

/** Call `draw(width)` now and whenever the width of `node` changes, until `signal` aborts. */
export function onWidth(node, draw, signal) {
  let last = 0;
  const observer = new ResizeObserver(() => {
    const width = Math.round(node.clientWidth);
    if (width && width !== last) draw((last = width));
  });
  observer.observe(node);
  signal?.addEventListener('abort', () => observer.disconnect());
}
