/** Pacing of steady traffic. */

/** The longest delay of a timer that is caught up; requests beyond are skipped. */
export const CATCH_UP_MS = 500;

export interface Due {
  readonly send: number;
  /** Requests that were due during a longer delay. */
  readonly skipped: number;
}

/** Counts due requests at a variable rate without losing fractions. The first is due at once. */
export class Pacer {
  private owed = 1;
  private last: number;

  constructor(now: number) {
    this.last = now;
  }

  /** Requests due at `now`, in milliseconds, at `rate` per second since the last call. */
  due(now: number, rate: number): Due {
    const elapsed = Math.max(0, now - this.last);
    this.last = now;
    if (rate <= 0) {
      // At rate zero not even the first request is sent.
      this.owed = Math.min(this.owed, 1);
      return { send: 0, skipped: 0 };
    }
    this.owed += (Math.min(elapsed, CATCH_UP_MS) * rate) / 1000;
    const send = Math.floor(this.owed + 1e-9);
    this.owed -= send;
    const skipped = Math.floor((Math.max(0, elapsed - CATCH_UP_MS) * rate) / 1000);
    return { send, skipped };
  }
}
