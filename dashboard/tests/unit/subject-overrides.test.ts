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
  readonly reason: string | null;
}

/** Answers requests with these in turn; returns the requests. */
function answering(...answers: (readonly [number, unknown])[]): SentRequest[] {
  const requests: SentRequest[] = [];
  globalThis.fetch = async (path, init) => {
    const headers = new Headers(init?.headers);
    requests.push({
      method: init?.method ?? "GET",
      path: String(path),
      ifMatch: headers.get("if-match"),
      ifNoneMatch: headers.get("if-none-match"),
      reason: headers.get("x-sluicegate-reason"),
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
  expect(requests).toMatchObject([{ method: "PUT", path: "/v1/overrides/7", ifMatch: '"3"' }]);
});

test("without a known override, an existing one is not overwritten", async () => {
  const free = answering([201, { ...READ, note: null }]);
  await setOverride(5, READ.subject, WANTED, undefined);
  expect(free).toMatchObject([{ method: "POST", path: "/v1/overrides", ifNoneMatch: "*" }]);

  answering([412, { detail: "there is one already" }], list(READ));
  const conflict = await setOverride(5, READ.subject, WANTED, undefined).catch((error: unknown) => error);
  expect(conflict).toBeInstanceOf(Conflict);
  expect(conflict).toMatchObject({ now: READ, isFirst: true });

  answering([404, { detail: "there is no such rule" }]);
  await expect(setOverride(5, READ.subject, WANTED, undefined)).rejects.toMatchObject({ status: 404 });
});

test("the reason of an override is also that of the change", async () => {
  const requests = answering([201, { ...READ, note: null }], [204, undefined]);
  await setOverride(5, READ.subject, { ...WANTED, reason: "launch day" }, undefined);
  await deleteOverride(READ, "over");
  expect(requests).toMatchObject([{ reason: "launch day" }, { reason: "over" }]);
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
  expect(requests).toMatchObject([{ method: "DELETE", path: "/v1/overrides/7", ifMatch: '"3"' }]);
  answering([404, { detail: "there is no such override" }]);
  await deleteOverride(READ);
  answering([412, { detail: "changed meanwhile: the current version is 4" }], list({ ...READ, version: 4 }));
  await expect(deleteOverride(READ)).rejects.toBeInstanceOf(Conflict);
});

test("other errors are passed on", async () => {
  answering([403, { detail: "this token may only read" }]);
  await expect(setOverride(5, READ.subject, WANTED, READ)).rejects.toMatchObject({ status: 403 });
});
