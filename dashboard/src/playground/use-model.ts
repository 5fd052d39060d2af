/** The bench of this tab, and the view of it. */

import { useEffect, useRef, useState } from "preact/hooks";
import { request } from "../api/client.ts";
import { hrefOf, replaceAddress, useRoute } from "../route.ts";
import { readSetup, writeSetup } from "./codec.ts";
import { type Environment, PlaygroundModel } from "./model.ts";
import { PAGE_CLOCK } from "./player.ts";
import { TAKE_PATH, TAKE_QUERY } from "./take.ts";

/** How often the view is drawn anew, at most: answers may come faster than anybody reads. */
const REDRAW_MS = 100;
/** Browsers refuse to change the address all the time. */
const ADDRESS_MS = 300;

const ENVIRONMENT: Environment = {
  ...PAGE_CLOCK,
  take: (body) => request("POST", TAKE_PATH, { query: TAKE_QUERY, body }),
  timeOfDay: () => Date.now(),
};

/** It outlives the view: who comes back from another one finds everything as it was. */
let model: PlaygroundModel | undefined;

/** A few letters that no other tab has. */
function randomName(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(5)), (byte) => (byte % 36).toString(36)).join("");
}

/** The bench, and a new rendering whenever it changes. It works as long as the view is shown. */
export function useModel(): PlaygroundModel {
  const { params } = useRoute();
  const address = params.toString();
  const [current] = useState(() => {
    model ??= new PlaygroundModel(ENVIRONMENT, randomName(), readSetup(params));
    // An address that says nothing, or nothing else, leaves what is there.
    const isOther = address !== "" && address !== writeSetup(model.setup()).toString();
    if (isOther) model.load(readSetup(params));
    return model;
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
      replaceAddress(hrefOf("playground", wanted));
    }, ADDRESS_MS);
    return () => clearTimeout(timer);
  }, [text, address]);
  return current;
}

/** Where the playground can be found as it is now. */
export function linkTo(model: PlaygroundModel): string {
  return `${location.origin}${location.pathname}${hrefOf("playground", writeSetup(model.setup()))}`;
}

/** Works until the answer is called. What was missed while the page was hidden is looked up at once. */
function awake(model: PlaygroundModel): () => void {
  const look = () => {
    if (!document.hidden) model.peekAll();
  };
  model.wake(() => document.hidden);
  document.addEventListener("visibilitychange", look);
  return () => {
    document.removeEventListener("visibilitychange", look);
    model.rest();
  };
}

/** Renders at once, and then at most every `REDRAW_MS`. */
function useRedraw(model: PlaygroundModel): void {
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
    const end = model.subscribe(() => {
      if (timer === undefined) redraw();
      else isDue = true;
    });
    return () => {
      end();
      clearTimeout(timer);
    };
  }, [model]);
}
