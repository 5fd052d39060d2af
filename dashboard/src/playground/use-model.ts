/** The playground model of this tab, connected to the view and the address. */

import { useEffect, useRef, useState } from "preact/hooks";
import { request } from "../api/client.ts";
import { hrefOf, replaceAddress, useRoute } from "../route.ts";
import { onSession } from "../session.ts";
import { readSetup, writeSetup } from "./codec.ts";
import { type Environment, PlaygroundModel } from "./model.ts";
import { PAGE_CLOCK } from "./player.ts";
import { TAKE_PATH, TAKE_QUERY } from "./take.ts";

/** The shortest interval between renderings: answers may come faster than they can be read. */
const REDRAW_MS = 100;
/** Delay before the address is updated: browsers limit how often it may change. */
const ADDRESS_MS = 300;

const ENVIRONMENT: Environment = {
  ...PAGE_CLOCK,
  take: (body) => request("POST", TAKE_PATH, { query: TAKE_QUERY, body, isData: true }),
  timeOfDay: () => Date.now(),
};

/** Outlives the view, so that its state is kept while another view is shown. */
let model: PlaygroundModel | undefined;

/** A random name for this tab. */
function randomName(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(5)), (byte) => (byte % 36).toString(36)).join("");
}

/** The model; renders again when it changes. It runs as long as the view is mounted. */
export function useModel(): PlaygroundModel {
  const { params } = useRoute();
  const address = params.toString();
  const [current] = useState(() => {
    model ??= new PlaygroundModel(ENVIRONMENT, randomName(), readSetup(params));
    // An empty or equal address keeps the current state.
    const isOther = address !== "" && address !== writeSetup(model.setup()).toString();
    if (isOther) model.load(readSetup(params));
    return model;
  });
  const lastAddress = useRef(address);
  useRedraw(current);
  useEffect(() => awake(current), [current]);
  useEffect(() => {
    if (address === lastAddress.current) return;
    // The user went back, or followed a link.
    lastAddress.current = address;
    current.load(readSetup(params));
  }, [address]);
  const wanted = writeSetup(current.setup());
  const text = wanted.toString();
  useEffect(() => {
    const timer = setTimeout(() => {
      if (text === lastAddress.current) return;
      lastAddress.current = text;
      replaceAddress(hrefOf("playground", wanted));
    }, ADDRESS_MS);
    return () => clearTimeout(timer);
  }, [text, address]);
  return current;
}

/** A link to the current state. */
export function linkTo(model: PlaygroundModel): string {
  return `${location.origin}${location.pathname}${hrefOf("playground", writeSetup(model.setup()))}`;
}

/** Runs the model until the returned function is called. Peeks at once when the page is visible again, or signed in. */
function awake(model: PlaygroundModel): () => void {
  const look = () => {
    if (!document.hidden) model.peekAll();
  };
  model.wake(() => document.hidden);
  const endSession = onSession(look);
  document.addEventListener("visibilitychange", look);
  return () => {
    endSession();
    document.removeEventListener("visibilitychange", look);
    model.rest();
  };
}

/** Renders after changes, at most every `REDRAW_MS`. */
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
