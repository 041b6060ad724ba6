// Builds the page into ../assets, as files with fixed names that the program takes in.
import { defineConfig } from 'vite';

export default defineConfig({
  base: '/',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: '../assets',
    emptyOutDir: true,
    modulePreload: false,
    target: 'es2022',
    cssCodeSplit: false,
    rollupOptions: { output: { entryFileNames: 'page.js', assetFileNames: 'page.[ext]', codeSplitting: false } },
  },
});
