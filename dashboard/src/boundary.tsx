/** What is shown instead of a view that has failed. */

import { Component, type ComponentChildren } from "preact";

interface BoundaryProps {
  readonly children: ComponentChildren;
}

interface BoundaryState {
  readonly failure: string | undefined;
}

/** Keeps the failure of a view from taking the page with it. */
export class Boundary extends Component<BoundaryProps, BoundaryState> {
  override state: BoundaryState = { failure: undefined };

  static override getDerivedStateFromError(error: unknown): BoundaryState {
    return { failure: error instanceof Error ? error.message : String(error) };
  }

  override render({ children }: BoundaryProps, { failure }: BoundaryState): ComponentChildren {
    if (failure === undefined) return children;
    return (
      <div class="panel" role="alert">
        <h1>This view has failed</h1>
        <p>The fault is the page's, not yours. The service goes on, and so do the other views.</p>
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
