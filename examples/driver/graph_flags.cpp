#include "graph_flags.hpp"

namespace kiln::driver {

void add_graph_flags(CLI::App& app, model_options& o) {
  CLI::Option_group& layout = *app.add_option_group("layout");
  layout.add_flag_callback(
      "--nhwc", [&o] { o.layout = tensorflow::data_format::nhwc; },
      "TensorFlow: images are NHWC where a node does not say (the default)");
  layout.add_flag_callback(
      "--nchw", [&o] { o.layout = tensorflow::data_format::nchw; },
      "TensorFlow: images are NCHW where a node does not say");
  layout.require_option(0, 1);
  app.add_option("--batch", o.batch, "TensorFlow: the extent of dims that the graph leaves open; 0 keeps them open")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option(
         "--output-names", o.output_names,
         "TensorFlow: the values wanted, as NODE or NODE:K, or outputs of the signature; else what no node reads")
      ->type_name("NAMES");
  app.add_option("--signature", o.signature,
                 "TensorFlow: the signature of a SavedModel, else serving_default; TFLite: the one that is meant, "
                 "under its names, else the first subgraph")
      ->type_name("NAME");
  app.add_option("--tag", o.tag, "TensorFlow: the tag of a SavedModel's graph; else serve")->type_name("NAME");
}

}  // namespace kiln::driver
