/** The bench of this tab, and the view of it. */

import { useEffect, useRef, useState } from "preact/hooks";
import { ask } from "../api/client.ts";
import { hrefOf, keepInAddress, useRoute } from "../route.ts";
import { Bench, type World } from "./bench.ts";
import { readSetup, writeSetup } from "./codec.ts";
import { PAGE_CLOCK } from "./player.ts";
import { TAKE_PATH, TAKE_QUERY } from "./take.ts";

/** How often the view is drawn anew, at most: answers may come faster than anybody reads. */
const REDRAW_MS = 100;
/** Browsers refuse to change the address all the time. */
const ADDRESS_MS = 300;

const WORLD: World = {
  ...PAGE_CLOCK,
  ask: (body) => ask("POST", TAKE_PATH, { query: TAKE_QUERY, body }),
  timeOfDay: () => Date.now(),
};

/** It outlives the view: who comes back from another one finds everything as it was. */
let bench: Bench | undefined;

/** A few letters that no other tab has. */
function randomName(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(5)), (byte) => (byte % 36).toString(36)).join("");
}

/** The bench, and a new rendering whenever it changes. It works as long as the view is shown. */
export function useBench(): Bench {
  const { params } = useRoute();
  const address = params.toString();
  const [current] = useState(() => {
    bench ??= new Bench(WORLD, randomName(), readSetup(params));
    // An address that says nothing, or nothing else, leaves what is there.
    const isOther = address !== "" && address !== writeSetup(bench.setup()).toString();
    if (isOther) bench.load(readSetup(params));
    return bench;
  });
  const kept = useRef(address);
  useRedraw(current);
  useEffect(() => awake(current), [current]);
  useEffect(() => {
    if (address === kept.current) return;
    // Somebody went back, or followed a link.
    kept.current = address;
    current.load(readSetup(params));
  }, [address]);
  const wanted = writeSetup(current.setup());
  const text = wanted.toString();
  useEffect(() => {
    const timer = setTimeout(() => {
      if (text === kept.current) return;
      kept.current = text;
      keepInAddress(hrefOf("playground", wanted));
    }, ADDRESS_MS);
    return () => clearTimeout(timer);
  }, [text, address]);
  return current;
}

/** Where the playground can be found as it is now. */
export function linkTo(bench: Bench): string {
  return `${location.origin}${location.pathname}${hrefOf("playground", writeSetup(bench.setup()))}`;
}

/** Works until the answer is called. What was missed while the page was hidden is looked up at once. */
function awake(bench: Bench): () => void {
  const look = () => {
    if (!document.hidden) bench.peekAll();
  };
  bench.wake(() => document.hidden);
  document.addEventListener("visibilitychange", look);
  return () => {
    document.removeEventListener("visibilitychange", look);
    bench.rest();
  };
}

/** Renders at once, and then at most every `REDRAW_MS`. */
function useRedraw(bench: Bench): void {
  const [, setTimes] = useState(0);
  useEffect(() => {
    let timer: number | undefined;
    let isDue = false;
    const redraw = () => {
      isDue = false;
      setTimes((times) => times + 1);
      timer = window.setTimeout(() => {
        timer = undefined;
        if (isDue) redraw();
      }, REDRAW_MS);
    };
    const end = bench.subscribe(() => {
      if (timer === undefined) redraw();
      else isDue = true;
    });
    return () => {
      end();
      clearTimeout(timer);
    };
  }, [bench]);
}
