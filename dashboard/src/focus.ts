/** Where whoever uses a keyboard or a screen reader goes on. */

/** To the heading of what is shown, or at least to its beginning. */
export function focusHeading(): void {
  const main = document.getElementById("main");
  const headings = main?.querySelectorAll<HTMLElement>("h1") ?? [];
  const heading = [...headings].find((heading) => heading.checkVisibility()) ?? main;
  if (heading === null) return;
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
}
