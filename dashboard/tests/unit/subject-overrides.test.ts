import { expect, test } from "@playwright/test";
import type { Override } from "../../src/api/types.ts";
import { Conflict, deleteOverride, setOverride } from "../../src/live/subject/overrides.ts";

const READ: Override = {
  override_id: 7,
  rule_id: 5,
  subject: "203.0.113.9",
  kind: "blocked",
  tokens: null,
  period: null,
  rate_per_second: null,
  burst_capacity: null,
  algorithm: null,
  refill: null,
  max_wait: null,
  reason: "",
  expires_at: null,
  created_by: "local",
  created_at: "2026-08-01T12:00:00Z",
  version: 3,
};
const WANTED = { blocked: true };

interface SentRequest {
  readonly method: string;
  readonly path: string;
  readonly ifMatch: string | null;
  readonly ifNoneMatch: string | null;
}

/** Answers requests with these in turn; returns the requests. */
function answering(...answers: (readonly [number, unknown])[]): SentRequest[] {
  const requests: SentRequest[] = [];
  globalThis.fetch = async (path, init) => {
    requests.push({
      method: init?.method ?? "GET",
      path: String(path),
      ifMatch: new Headers(init?.headers).get("if-match"),
      ifNoneMatch: new Headers(init?.headers).get("if-none-match"),
    });
    const [status, body] = answers[requests.length - 1] ?? [500, {}];
    return new Response(status === 204 ? null : JSON.stringify(body), { status });
  };
  return requests;
}

const list = (...overrides: Override[]) => [200, { overrides, next: null }] as const;
const real = globalThis.fetch;
test.afterEach(() => {
  globalThis.fetch = real;
});

test("a known override is replaced in the version that was read", async () => {
  const requests = answering([200, { ...READ, note: null }]);
  await setOverride(5, READ.subject, WANTED, READ);
  expect(requests).toEqual([{ method: "PUT", path: "/v1/overrides/7", ifMatch: '"3"', ifNoneMatch: null }]);
});

test("without a known override, an existing one is not overwritten", async () => {
  const free = answering([201, { ...READ, note: null }]);
  await setOverride(5, READ.subject, WANTED, undefined);
  expect(free).toEqual([{ method: "POST", path: "/v1/overrides", ifMatch: null, ifNoneMatch: "*" }]);

  const taken = answering([412, { detail: "the subject has an override already" }], list(READ));
  const conflict = await setOverride(5, READ.subject, WANTED, undefined).catch((error: unknown) => error);
  expect(conflict).toBeInstanceOf(Conflict);
  expect((conflict as Conflict).now).toEqual(READ);
  expect(taken.map(({ method }) => method)).toEqual(["POST", "GET"]);
});

test("a concurrent change is reported", async () => {
  const theirs = { ...READ, version: 4 };
  answering([412, { detail: "changed meanwhile: the current version is 4" }], list(theirs));
  const changed = await setOverride(5, READ.subject, WANTED, READ).catch((error: unknown) => error);
  expect((changed as Conflict).now).toEqual(theirs);

  answering([404, { detail: "there is no such override" }], list());
  const gone = await setOverride(5, READ.subject, WANTED, READ).catch((error: unknown) => error);
  expect(gone).toBeInstanceOf(Conflict);
  expect((gone as Conflict).now).toBeUndefined();
});

test("only the version that was read is deleted; a missing one counts as deleted", async () => {
  const requests = answering([204, undefined]);
  await deleteOverride(READ);
  expect(requests).toEqual([{ method: "DELETE", path: "/v1/overrides/7", ifMatch: '"3"', ifNoneMatch: null }]);
  answering([404, { detail: "there is no such override" }]);
  await deleteOverride(READ);
  answering([412, { detail: "changed meanwhile: the current version is 4" }], list({ ...READ, version: 4 }));
  await expect(deleteOverride(READ)).rejects.toBeInstanceOf(Conflict);
});

test("other errors are passed on", async () => {
  answering([403, { detail: "this token may only read" }]);
  await expect(setOverride(5, READ.subject, WANTED, READ)).rejects.toMatchObject({ status: 403 });
});
