/** On a small screen, what is opened may open further down than one can see. */
export function bringIntoSight(element: Element | null): void {
  if (element === null) return;
  const { top, bottom } = element.getBoundingClientRect();
  const seen = Math.min(bottom, window.innerHeight) - Math.max(top, 0);
  if (seen < ENOUGH) element.scrollIntoView({ block: 'start' });
}

/** Pixels: a title and what is below it. */
const ENOUGH = 160;
