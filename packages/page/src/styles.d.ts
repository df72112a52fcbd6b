// Stylesheets are bundled into main.css: https://esbuild.github.io/content-types/#css
declare module "*.css";
