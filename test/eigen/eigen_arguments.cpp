// kiln/eigen.hpp: memory is shared, and what does not fit is refused in words.
#include "kiln/eigen.hpp"

#include <gmock/gmock.h>

#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using row_major_matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

dims strides_of(const argument& a) { return a.get_shape().element_strides(); }
void expect_refused(const std::function<void()>& f, const char* rule, const char* expected, const char* found) {
  const auto [code, text] = error_of(f);
  EXPECT_EQ(code, errc::shape_mismatch);
  EXPECT_THAT(text, AllOf(HasSubstr(rule), HasSubstr(expected), HasSubstr(found)));
}

TEST(eigen_arguments, show_the_memory_of_matrices) {
  Eigen::MatrixXf columns = Eigen::MatrixXf::Random(3, 4);
  row_major_matrix rows = columns;
  for (const argument& a : {as_argument(columns), as_argument(rows)}) {
    EXPECT_EQ(a.get_shape().type, dtype::f32);
    EXPECT_EQ(a.get_shape().lens, (dims{3, 4}));
    const auto values = a.to<float>();
    for (int r = 0; r < 3; ++r)
      for (int c = 0; c < 4; ++c) EXPECT_EQ(values[static_cast<std::size_t>(r * 4 + c)], columns(r, c));
  }
  EXPECT_EQ(strides_of(as_argument(columns)), (dims{1, 3}));
  EXPECT_EQ(strides_of(as_argument(rows)), (dims{4, 1}));
  EXPECT_EQ(static_cast<const void*>(as_argument(columns).data()), columns.data());
  const argument part = as_argument(columns.block(1, 1, 2, 2));
  EXPECT_EQ(static_cast<const void*>(part.data()), &columns(1, 1));
  EXPECT_EQ(strides_of(part), (dims{1, 3}));
  EXPECT_EQ(part.to<float>()[1], columns(1, 2));
}

TEST(eigen_arguments, show_vectors_arrays_maps_and_references) {
  const Eigen::Vector3i vector(1, 2, 3);
  EXPECT_EQ(as_argument(vector).get_shape().lens, (dims{3}));
  EXPECT_EQ(as_argument(vector).get_shape().type, dtype::i32);
  const Eigen::RowVector2d row(4, 5);
  EXPECT_EQ(as_argument(row).to<double>()[1], 5);
  Eigen::ArrayXX<std::uint8_t> array(2, 2);
  array << 1, 2, 3, 4;
  EXPECT_THAT(as_argument(array).to<std::uint64_t>(), ::testing::ElementsAre(1, 2, 3, 4));
  double numbers[] = {1, 2, 3, 4, 5, 6};
  const Eigen::Map<Eigen::VectorXd, 0, Eigen::InnerStride<2>> even(numbers, 3);
  EXPECT_THAT(as_argument(even).to<double>(), ::testing::ElementsAre(1, 3, 5));
  const Eigen::Matrix2f square{{1, 2}, {3, 4}};
  const Eigen::Ref<const Eigen::Matrix2f> reference(square);
  EXPECT_EQ(static_cast<const void*>(as_argument(reference).data()), square.data());
  EXPECT_THAT(as_argument(square.transpose()).to<float>(), ::testing::ElementsAre(1, 3, 2, 4));
  const Eigen::Matrix<Eigen::half, 2, 1> halves(Eigen::half(1.5f), Eigen::half(-2.0f));
  EXPECT_EQ(as_argument(halves).get_shape().type, dtype::f16);
  EXPECT_THAT(as_argument(halves).to<float>(), ::testing::ElementsAre(1.5f, -2));
  const Eigen::Matrix<Eigen::bfloat16, 1, 1> brain(Eigen::bfloat16(3.0f));
  EXPECT_EQ(as_argument(brain).get_shape().type, dtype::bf16);
  EXPECT_EQ(as_argument(brain).to<float>()[0], 3);
}

TEST(eigen_arguments, show_tensors) {
  Eigen::Tensor<float, 3> columns(2, 3, 4);
  Eigen::Tensor<float, 3, Eigen::RowMajor> rows(2, 3, 4);
  float next = 0;
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 4; ++k) columns(i, j, k) = rows(i, j, k) = next++;
  for (const argument& a : {as_argument(columns), as_argument(rows)}) {
    EXPECT_EQ(a.get_shape().lens, (dims{2, 3, 4}));
    for (std::size_t k = 0; k < 24; ++k) EXPECT_EQ(a.to<float>()[k], static_cast<float>(k));
  }
  EXPECT_EQ(strides_of(as_argument(columns)), (dims{1, 2, 6}));
  EXPECT_EQ(static_cast<const void*>(as_argument(rows).data()), rows.data());
  const Eigen::TensorMap<Eigen::Tensor<float, 2>> map(columns.data(), 6, 4);
  EXPECT_EQ(strides_of(as_argument(map)), (dims{1, 6}));
}

TEST(eigen_arguments, come_back_as_maps) {
  argument a = random_argument({dtype::f32, {3, 4}}, 1);
  auto map = as_map<row_major_matrix>(a);
  EXPECT_EQ(static_cast<void*>(map.data()), static_cast<void*>(a.data()));
  EXPECT_EQ(map(1, 2), a.as<float>()[6]);
  map(2, 3) = 9;
  EXPECT_EQ(a.as<float>()[11], 9);
  const auto turned = as_strided_map<Eigen::MatrixXf>(a);
  EXPECT_EQ(static_cast<const void*>(turned.data()), static_cast<void*>(a.data()));
  EXPECT_EQ(turned(1, 2), a.as<float>()[6]);
  EXPECT_EQ(turned, map);
  const argument& constant = a;
  const auto fixed = as_map<const Eigen::Matrix<float, 3, 4, Eigen::RowMajor>>(constant);
  EXPECT_EQ(fixed(2, 0), a.as<float>()[8]);

  Eigen::MatrixXf columns = Eigen::MatrixXf::Random(5, 2);
  argument shown = as_argument(columns);
  EXPECT_EQ(as_map<Eigen::MatrixXf>(shown), columns);
  const auto strided_rows = as_strided_map<row_major_matrix>(shown);
  EXPECT_EQ(strided_rows, columns);

  argument line = random_argument({dtype::i64, {7}}, 2, -50, 50);
  EXPECT_EQ((as_map<Eigen::Matrix<std::int64_t, Eigen::Dynamic, 1>>(line)(6)), line.as<std::int64_t>()[6]);
  EXPECT_EQ((as_map<Eigen::Array<std::int64_t, 1, 7>>(line)(3)), line.as<std::int64_t>()[3]);
}

TEST(eigen_arguments, come_back_as_tensor_maps) {
  argument a = random_argument({dtype::f64, {2, 3, 4}}, 1);
  auto map = as_tensor_map<Eigen::Tensor<double, 3, Eigen::RowMajor>>(a);
  EXPECT_EQ(static_cast<void*>(map.data()), static_cast<void*>(a.data()));
  EXPECT_EQ(map(1, 2, 3), a.as<double>()[23]);
  map(0, 0, 1) = 7;
  EXPECT_EQ(a.as<double>()[1], 7);
  Eigen::Tensor<float, 2> columns(3, 2);
  columns.setRandom();
  const argument shown = as_argument(columns);
  EXPECT_EQ((as_tensor_map<const Eigen::Tensor<float, 2>>(shown)(2, 1)), columns(2, 1));
}

TEST(eigen_arguments, what_does_not_fit_is_refused) {
  argument a(shape{dtype::f32, {3, 4}}), line(shape{dtype::f32, {3}});
  using tensor = Eigen::Tensor<float, 2>;
  expect_refused([&] { as_map<Eigen::MatrixXd>(a); }, "dtype of an Eigen map", "f64", "f32");
  expect_refused([&] { as_tensor_map<Eigen::Tensor<int, 2>>(a); }, "dtype of an Eigen map", "i32", "f32");
  expect_refused([&] { as_map<row_major_matrix>(line); }, "rank of an Eigen map", "2", "1");
  expect_refused([&] { as_map<Eigen::VectorXf>(a); }, "rank of an Eigen map", "1", "2");
  expect_refused([&] { as_tensor_map<Eigen::Tensor<float, 3>>(a); }, "rank of an Eigen map", "3", "2");
  expect_refused([&] { as_map<Eigen::MatrixXf>(a); }, "storage order of an Eigen map", "column-major", "row-major");
  expect_refused([&] { as_tensor_map<tensor>(a); }, "storage order of an Eigen map", "column-major", "row-major");
  expect_refused([&] { as_strided_map<Eigen::Matrix<float, 2, Eigen::Dynamic>>(a); }, "rows of an Eigen map", "2", "3");
  expect_refused([&] { as_strided_map<Eigen::Matrix<float, Eigen::Dynamic, 3>>(a); }, "columns of an Eigen map", "3",
                 "4");
  Eigen::MatrixXf big(6, 6);
  const argument part = as_argument(big.block(0, 0, 3, 3)), columns = as_argument(big);
  expect_refused([&] { as_map<const Eigen::MatrixXf>(part); }, "storage order", "column-major", "[1, 6]");
  expect_refused([&] { as_map<const row_major_matrix>(columns); }, "storage order", "row-major", "[1, 6]");
}

TEST(eigen_arguments, an_order_does_not_matter_to_a_line) {
  argument row(shape{dtype::f32, {1, 4}}), column(shape{dtype::f32, {4, 1}}), none(shape{dtype::f32, {0, 4}});
  for (argument* a : {&row, &column, &none}) {
    EXPECT_NO_THROW(as_map<Eigen::MatrixXf>(*a));
    EXPECT_NO_THROW(as_map<row_major_matrix>(*a));
  }
}

TEST(eigen_arguments, run_in_place) {
  const Eigen::MatrixXd x = Eigen::MatrixXd::Random(9, 5), w = Eigen::MatrixXd::Random(5, 7);
  Eigen::Matrix<double, 9, 7, Eigen::RowMajor> y;
  const executable e = compile_eigen([](builder& b) {
    b.output(b.input("x", dtype::f64, {9, 5}).dot(b.input("w", dtype::f64, {5, 7})));
  });
  workspace space = e.make_workspace();
  const argument in[] = {as_argument(x), as_argument(w)};
  argument out[] = {as_argument(y)};
  e.run(space, in, out);
  EXPECT_LT((y - x * w).norm(), 1e-13);
}

}  // namespace
}  // namespace kiln::testing
