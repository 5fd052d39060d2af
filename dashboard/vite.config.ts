import { defineConfig } from "vite";

/** Where `npm run dev` finds a service to talk to. */
const service = process.env["SLUICEGATE_URL"] ?? "http://127.0.0.1:8080";

/** The service answers its own page only: to it, this one has no origin. */
const proxy = {
  target: service,
  changeOrigin: true,
  configure: (proxied: {
    on(event: "proxyReq", listener: (request: { removeHeader(name: string): void }) => void): void;
  }) => {
    proxied.on("proxyReq", (request) => request.removeHeader("origin"));
  },
};

export default defineConfig({
  build: {
    outDir: "dist/page",
    emptyOutDir: true,
    target: "es2023",
    // A file that is part of another is not what the page's policy allows.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: { proxy: { "/v1": proxy, "/openapi.json": proxy, "/readyz": proxy, "/metrics": proxy } },
});
