/** Focus for users of a keyboard or a screen reader. */

/** Focuses the heading of the view, or the main element if there is none. */
export function focusHeading(): void {
  const main = document.getElementById("main");
  const headings = main?.querySelectorAll<HTMLElement>("h1") ?? [];
  const heading = [...headings].find((heading) => heading.checkVisibility()) ?? main;
  if (heading === null) return;
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
}
