/** Steady traffic: how many requests are due. */

/** What a timer that was late may make up for; the rest is not sent. */
export const CATCH_UP_MS = 500;

export interface Due {
  readonly send: number;
  /** Those that would have been due while the page was held up. */
  readonly skipped: number;
}

/** Counts requests at a rate, which may change, without losing fractions. The first is due at once. */
export class Pacer {
  private owed = 1;
  private last: number;

  constructor(now: number) {
    this.last = now;
  }

  /** How many to send at `now`, in milliseconds, at `rate` per second since the last time. */
  due(now: number, rate: number): Due {
    const elapsed = Math.max(0, now - this.last);
    this.last = now;
    if (rate <= 0) {
      // Or the first request of a rate of zero would go out.
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
