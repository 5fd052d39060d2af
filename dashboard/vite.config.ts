import { defineConfig } from "vite";

/** Address of the service that `npm run dev` sends requests to. */
const service = process.env["SLUICEGATE_URL"] ?? "http://127.0.0.1:8080";

/** Removes the origin: the service refuses requests from pages of other origins. */
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
    // The content security policy of the page does not allow inlined files.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: { proxy: { "/v1": proxy, "/openapi.json": proxy, "/readyz": proxy, "/metrics": proxy } },
});
