import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';

const SERVER = process.env.OSTINATO_SERVER ?? 'http://127.0.0.1:8080';

export default defineConfig({
  base: '/ui/',
  plugins: [react()],
  build: {
    outDir: '../src/ostinato/_ui',
    emptyOutDir: true,
    // Everything is a file of its own: the server's policy allows no script or image inside the page.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 600,
  },
  worker: { format: 'es' },
  server: { proxy: { '/graphql': { target: SERVER, ws: true }, '/v1': SERVER } },
  test: { environment: 'node', include: ['src/**/*.test.ts'] },
});
