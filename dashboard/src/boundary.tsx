/** Error boundary: shown in place of a view that threw. */

import { Component, type ComponentChildren } from "preact";

interface BoundaryProps {
  readonly children: ComponentChildren;
}

interface BoundaryState {
  readonly failure: string | undefined;
}

/** Keeps an error in one view from breaking the page. */
export class Boundary extends Component<BoundaryProps, BoundaryState> {
  override state: BoundaryState = { failure: undefined };

  static override getDerivedStateFromError(error: unknown): BoundaryState {
    return { failure: error instanceof Error ? error.message : String(error) };
  }

  override render({ children }: BoundaryProps, { failure }: BoundaryState): ComponentChildren {
    if (failure === undefined) return children;
    return (
      <div class="panel" role="alert">
        <h1>This view failed</h1>
        <p>This is a bug in the page. The service and the other views are not affected.</p>
        <p class="key muted">{failure}</p>
        <div class="row">
          <button type="button" class="button primary" onClick={() => this.setState({ failure: undefined })}>
            Try again
          </button>
          <button type="button" class="button" onClick={() => location.reload()}>
            Reload the page
          </button>
        </div>
      </div>
    );
  }
}
