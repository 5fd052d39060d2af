/** Starts the real binary for a test, and opens its page. */

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { test as base, expect } from "@playwright/test";

const BINARY = resolve(process.env["SLUICEGATE_BIN"] ?? "../target/debug/sluicegate");

/** Settings, such as `SLUICEGATE_ADMIN_TOKEN`. */
export type Settings = Record<string, string>;

/** A running service with its own empty database. */
export class Service {
  private constructor(
    readonly url: string,
    private child: ChildProcess,
    private readonly folder: string,
    private readonly settings: Settings,
  ) {}

  /** Starts the service on a free port. */
  static async start(settings: Settings = {}): Promise<Service> {
    const folder = mkdtempSync(join(tmpdir(), "sluicegate-page-"));
    const { child, address } = await launch(folder, "127.0.0.1:0", settings);
    return new Service(`http://${address}`, child, folder, settings);
  }

  /** Stops the service with SIGTERM, and deletes its data. */
  async stop(): Promise<void> {
    await this.halt();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Stops the service, and keeps its data. */
  async halt(): Promise<void> {
    if (this.child.exitCode !== null) return;
    this.child.kill("SIGTERM");
    await once(this.child, "exit");
  }

  /** Starts the service after `halt`, at the same address. */
  async resume(): Promise<void> {
    const { child } = await launch(this.folder, new URL(this.url).host, this.settings);
    this.child = child;
  }

  /** Runs another command of the binary on the same database, and returns its output. */
  run(...args: string[]): string {
    const env = environment("127.0.0.1:0", this.settings);
    return execFileSync(BINARY, args, { cwd: this.folder, env, stdio: ["ignore", "pipe", "ignore"] }).toString();
  }

  /** Sends a request, bypassing the page. */
  async request(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Response> {
    return fetch(`${this.url}${path}`, {
      method,
      headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  }

  /** Sends a request and returns the parsed body. Throws on an error status. */
  async call<T>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await this.request(method, path, body);
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    const text = await response.text();
    return (text === "" ? undefined : JSON.parse(text)) as T;
  }
}

function environment(address: string, settings: Settings): Settings {
  return {
    PATH: process.env["PATH"] ?? "",
    SLUICEGATE_LISTEN_HTTP: address,
    SLUICEGATE_LISTEN_GRPC: "",
    SLUICEGATE_LISTEN_RESP: "",
    ...settings,
  };
}

async function launch(
  folder: string,
  address: string,
  settings: Settings,
): Promise<{ child: ChildProcess; address: string }> {
  const child = spawn(BINARY, ["serve"], {
    cwd: folder,
    env: environment(address, settings),
    stdio: ["ignore", "ignore", "pipe"],
  });
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stderr! })) {
    lines.push(line);
    const address = /"listening","listener":"http".*"address":"([^"]+)"/.exec(line)?.[1];
    if (address !== undefined) {
      child.stderr!.resume();
      return { child, address };
    }
  }
  throw new Error(`the service did not start:\n${lines.join("\n")}`);
}

interface Fixtures {
  /** Settings of the service: `test.use({ settings: { ... } })`. */
  settings: Settings;
  /** The service of this test; its page is at `/`. */
  service: Service;
}

/**
 * A test with a service and a page. Console errors, exceptions, violations of the content security policy and requests
 * to other hosts fail the test.
 */
export const test = base.extend<Fixtures>({
  settings: [{}, { option: true }],
  service: async ({ settings }, use) => {
    const service = await Service.start(settings);
    await use(service);
    await service.stop();
  },
  baseURL: async ({ service }, use) => use(service.url),
  page: async ({ page, service }, use) => {
    const wrong: string[] = [];
    page.on("pageerror", (error) => wrong.push(`thrown: ${error.message}`));
    page.on("console", (message) => {
      // The browser logs every error status, which tests may expect.
      const isErrorStatus = message.text().startsWith("Failed to load resource");
      if (message.type() === "error" && !isErrorStatus) wrong.push(`console: ${message.text()}`);
    });
    page.on("request", (request) => {
      const url = new URL(request.url());
      if (url.protocol.startsWith("http") && url.origin !== service.url) wrong.push(`request to ${url.origin}`);
    });
    await use(page);
    expect(wrong).toEqual([]);
  },
});

export { expect };
