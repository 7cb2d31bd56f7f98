#include <array>
#include <optional>

#include "onnx/run_model.hpp"

// ImageDecoder: each format, without its alpha, and bytes that are no image.
namespace kiln::test {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

using file = std::vector<std::uint8_t>;

file bytes_of(std::string_view text) { return {text.begin(), text.end()}; }
file from_hex(std::string_view digits) {
  file out;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
    out.push_back(static_cast<std::uint8_t>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16)));
  return out;
}
void append(file& to, const file& more) { to.insert(to.end(), more.begin(), more.end()); }
file little(std::uint32_t n, int count) {
  file out;
  for (int i = 0; i < count; ++i) out.push_back(static_cast<std::uint8_t>(n >> (8 * i)));
  return out;
}
file big(std::uint32_t n) {
  return {std::uint8_t(n >> 24), std::uint8_t(n >> 16), std::uint8_t(n >> 8), std::uint8_t(n)};
}

std::vector<std::uint8_t> bytes_of(const argument& a) {
  const auto all = a.as<std::uint8_t>();
  return {all.begin(), all.end()};
}

argument decoded(const file& f, const char* pixel_format = "RGB") {
  const auto m = model_of({{node("ImageDecoder", {"x"}, {"y"}, {attr("pixel_format", pixel_format)})},
                           {},
                           {value_info("x", 2, {"n"})},
                           {value_info("y")}},
                          20);
  return run_model(m, {argument::of<std::uint8_t>({static_cast<std::int64_t>(f.size())}, std::span(f))})[0];
}

// Pixels of a format that kiln may have been built without: nothing then, which is said.
std::optional<argument> decoded_by_library(const file& f, const char* pixel_format = "RGB") {
  try {
    return decoded(f, pixel_format);
  } catch (const error& e) {
    EXPECT_THAT(e.what(), HasSubstr("kiln was built without"));
    return std::nullopt;
  }
}
#define KILN_DECODED(name, ...)                                                  \
  const auto name##_or = decoded_by_library(__VA_ARGS__);                        \
  if (!name##_or) GTEST_SKIP() << "kiln was built without the format's library"; \
  const argument& name = *name##_or

// Three pixels by two; the same in all formats.
const file colors = {255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 20, 30, 200, 100, 50, 255, 255, 255};

file bitmap(int bits, int height, std::uint32_t packing, const file& behind, const file& data) {
  file f = bytes_of("BM");
  for (const auto& part :
       {little(0, 8), little(static_cast<std::uint32_t>(54 + behind.size()), 4), little(40, 4), little(3, 4),
        little(static_cast<std::uint32_t>(height), 4), little(1, 2), little(static_cast<std::uint32_t>(bits), 2),
        little(packing, 4), little(0, 20), behind, data})
    append(f, part);
  return f;
}

TEST(import_images, bitmaps_begin_with_their_last_row) {
  const file rows = {30, 20, 10, 50, 100, 200, 255, 255, 255, 0, 0, 0, 0, 0, 255, 0, 255, 0, 255, 0, 0, 0, 0, 0};
  EXPECT_EQ(bytes_of(decoded(bitmap(24, 2, 0, {}, rows))), colors);
  const file from_top = {0, 0, 255, 0, 255, 0, 255, 0, 0, 0, 0, 0, 30, 20, 10, 50, 100, 200, 255, 255, 255, 0, 0, 0};
  EXPECT_EQ(bytes_of(decoded(bitmap(24, -2, 0, {}, from_top))), colors);
}

TEST(import_images, bitmaps_have_palettes_masks_and_runs) {
  const file palette = {1, 2, 3, 0, 4, 5, 6, 0, 7, 8, 9, 0, 10, 11, 12, 0};
  file full = palette;
  full.resize(1024);
  const std::vector<std::uint8_t> wanted = {3, 2, 1, 6, 5, 4, 9, 8, 7};
  EXPECT_EQ(bytes_of(decoded(bitmap(8, 1, 0, full, {0, 1, 2, 0}))), wanted);
  file of_16 = palette;
  of_16.resize(64);
  EXPECT_EQ(bytes_of(decoded(bitmap(4, 1, 0, of_16, {0x01, 0x20, 0, 0}))), wanted);
  EXPECT_THAT(bytes_of(decoded(bitmap(1, 1, 0, {1, 2, 3, 0, 4, 5, 6, 0}, {0x40, 0, 0, 0}))),
              ElementsAre(3, 2, 1, 6, 5, 4, 3, 2, 1));
  // five bits a color, and as masks say
  EXPECT_THAT(bytes_of(decoded(bitmap(16, 1, 0, {}, {0x00, 0x7c, 0xe0, 0x03, 0x10, 0x00, 0, 0}))),
              ElementsAre(255, 0, 0, 0, 255, 0, 0, 0, 131));
  file masks = {0xff, 0, 0, 0, 0, 0xff, 0, 0, 0, 0, 0xff, 0};
  EXPECT_THAT(bytes_of(decoded(bitmap(32, 1, 3, masks, {1, 2, 3, 9, 4, 5, 6, 9, 7, 8, 9, 9}))),
              ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9));
  // one pixel twice, end of row; then a move by one and two pixels as they are, end
  EXPECT_THAT(bytes_of(decoded(bitmap(8, 2, 1, full, {2, 1, 1, 2, 0, 0, 0, 2, 1, 0, 1, 3, 1, 2, 0, 1}))),
              ElementsAre(0, 0, 0, 12, 11, 10, 9, 8, 7, 6, 5, 4, 6, 5, 4, 9, 8, 7));
  EXPECT_THAT(bytes_of(decoded(bitmap(4, 1, 2, of_16, {0, 3, 0x01, 0x20, 0, 1}))), ElementsAreArray(wanted));
}

TEST(import_images, portable_maps_are_text_or_packed) {
  EXPECT_EQ(bytes_of(decoded(bytes_of("P3\n# made by hand\n3 2 255 255 0 0 0 255 0 0 0 255\n10 20 30 200 100 50 "
                                      "255 255 255\n"))),
            colors);
  file packed = bytes_of("P6 3 2\n255\n");
  append(packed, colors);
  const argument image = decoded(packed);
  EXPECT_EQ(lens_of(image), (std::vector<std::int64_t>{2, 3, 3}));
  EXPECT_EQ(bytes_of(image), colors);
  EXPECT_THAT(bytes_of(decoded(bytes_of("P2 2 1 7 0 3"))), ElementsAre(0, 0, 0, 109, 109, 109));
  EXPECT_THAT(bytes_of(decoded(bytes_of("P1 2 1 10"), "Grayscale")), ElementsAre(0, 255));
  EXPECT_THAT(bytes_of(decoded(bytes_of("P4 2 1 \x40"), "Grayscale")), ElementsAre(255, 0));
  EXPECT_THAT(bytes_of(decoded(from_hex("5035202032203120363535333520ffff8000"), "Grayscale")), ElementsAre(255, 128));
}

TEST(import_images, pixels_are_given_in_the_order_asked_for) {
  const file f = bytes_of("P3 2 1 255 1 2 3 255 255 255");
  EXPECT_THAT(bytes_of(decoded(f, "BGR")), ElementsAre(3, 2, 1, 255, 255, 255));
  const argument gray = decoded(bytes_of("P3 3 1 255 255 0 0 0 255 0 0 0 255"), "Grayscale");
  EXPECT_EQ(lens_of(gray), (std::vector<std::int64_t>{1, 3, 1}));
  EXPECT_THAT(bytes_of(gray), ElementsAre(76, 150, 29));
}

// A PNG of rows that are not compressed.
file png(std::uint32_t width, std::uint32_t height, int bits, int kind, const file& rows, const file& palette = {},
         const file& alpha = {}) {
  file f = from_hex("89504e470d0a1a0a");
  const auto chunk = [&](std::string_view name, const file& data) {
    append(f, big(static_cast<std::uint32_t>(data.size())));
    file sum = bytes_of(name);
    append(sum, data);
    append(f, sum);
    std::uint32_t crc = ~0u;
    for (const std::uint8_t b : sum) {
      crc ^= b;
      for (int k = 0; k < 8; ++k) crc = crc & 1 ? 0xedb88320u ^ (crc >> 1) : crc >> 1;
    }
    append(f, big(~crc));
  };
  file header = big(width);
  append(header, big(height));
  append(header, {std::uint8_t(bits), std::uint8_t(kind), 0, 0, 0});
  chunk("IHDR", header);
  if (!palette.empty()) chunk("PLTE", palette);
  if (!alpha.empty()) chunk("tRNS", alpha);
  const auto size = static_cast<std::uint32_t>(rows.size());
  std::uint32_t a = 1, b = 0;
  for (const std::uint8_t r : rows) a = (a + r) % 65521, b = (b + a) % 65521;
  file data = {0x78, 1, 1};
  append(data, little(size, 2));
  append(data, little(~size, 2));
  append(data, rows);
  append(data, big(b << 16 | a));
  chunk("IDAT", data);
  chunk("IEND", {});
  return f;
}

TEST(import_images, png_gives_colors_alone) {
  KILN_DECODED(image, png(3, 2, 8, 2, from_hex("00ff000000ff000000ff000a141ec86432ffffff")));
  EXPECT_EQ(bytes_of(image), colors);
  EXPECT_THAT(bytes_of(decoded(png(2, 1, 8, 6, {0, 1, 2, 3, 0, 4, 5, 6, 128}))), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(bytes_of(decoded(png(2, 1, 1, 3, {0, 0x40}, {1, 2, 3, 4, 5, 6}, {0, 128}))),
              ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(bytes_of(decoded(png(2, 1, 16, 0, {0, 0x12, 0xff, 0xab, 0x00}), "Grayscale")), ElementsAre(0x12, 0xab));
  EXPECT_THAT(bytes_of(decoded(png(2, 1, 2, 0, {0, 0x60}))), ElementsAre(85, 85, 85, 170, 170, 170));
}

TEST(import_images, png_that_ends_early_is_none) {
  file f = png(3, 2, 8, 2, from_hex("00ff000000ff000000ff000a141ec86432ffffff"));
  f.resize(60);
  KILN_DECODED(image, f);
  EXPECT_EQ(lens_of(image), (std::vector<std::int64_t>{0, 0, 3}));
}

TEST(import_images, an_image_has_a_largest_size) {
  try {
    decoded(png(40000, 40000, 8, 2, {0}));
    FAIL();
  } catch (const error& e) {
    EXPECT_THAT(e.what(), testing::AnyOf(HasSubstr("40000 x 40000"), HasSubstr("built without")));
  }
}

// A TIFF of one uncompressed strip; `alpha` is what EXTRASAMPLES says of a fourth sample.
file tiff(std::uint32_t width, std::uint32_t height, const file& samples, std::optional<std::uint32_t> alpha = {}) {
  file f = from_hex("49492a0008000000");
  std::vector<std::array<std::uint32_t, 3>> entries = {
      {256, 1, width},  {257, 1, height},
      {258, 1, 8},      {262, 1, 2},
      {273, 1, 110},    {277, 1, alpha ? 4u : 3u},
      {278, 1, height}, {279, 1, static_cast<std::uint32_t>(samples.size())}};
  if (alpha) entries.push_back({338, 1, *alpha}), entries[4][2] += 12;
  append(f, little(static_cast<std::uint32_t>(entries.size()), 2));
  for (const auto& [tag, count, value] : entries) {
    append(f, little(tag, 2));
    append(f, little(4, 2));
    append(f, little(count, 4));
    append(f, little(value, 4));
  }
  append(f, little(0, 4));
  EXPECT_EQ(f.size(), entries[4][2]);
  append(f, samples);
  return f;
}

TEST(import_images, tiff_of_one_strip) {
  KILN_DECODED(image, tiff(3, 2, colors));
  EXPECT_EQ(bytes_of(image), colors);
}

TEST(import_images, tiff_leaves_colors_under_transparency_alone) {
  for (const std::uint32_t kind : {0u, 1u, 2u}) {
    KILN_DECODED(image, tiff(2, 1, {200, 100, 50, 128, 20, 10, 5, 0}, kind));
    EXPECT_THAT(bytes_of(image), ElementsAre(200, 100, 50, 20, 10, 5)) << kind;
  }
}

TEST(import_images, webp_leaves_colors_under_transparency_alone) {
  KILN_DECODED(image,
               from_hex("524946464a000000574542505650384c3e0000002f024000102f40906db341dcebfe32d32093b669dffad7336b2393"
                        "b6693df49e7f972393b6a1ba7b4de03435e074124bb6f62f211020432c6911d1ff8805"));
  EXPECT_EQ(lens_of(image), (std::vector<std::int64_t>{2, 3, 3}));
  EXPECT_EQ(bytes_of(image), colors);
}

TEST(import_images, jpeg_2000_is_a_file_or_a_stream) {
  const std::string stream =
      "ff4fff51002f000000000003000000020000000000000000000000030000000200000000000000000003070101070101070101ff52000c"
      "00000001010004040001ff5c00044040ff90000a00000000002c0001ff93cfb42008f59c591fd4657fdf80380e19806b63da5fdf803002f0"
      "ca0babf3ffd9";
  KILN_DECODED(image,
               from_hex("0000000c6a5020200d0a870a00000014667479706a703220000000006a7032200000002d6a703268000000166968"
                        "647200000002000000030003070700000000000f636f6c720100000000001000000000"
                        "6a703263" +
                        stream));
  EXPECT_EQ(bytes_of(image), colors);
  EXPECT_EQ(bytes_of(decoded(from_hex(stream))), colors);
}

TEST(import_images, jpeg_may_hold_gray_or_inks) {
  std::string tables = "ffdb004300";
  for (int i = 0; i < 64; ++i) tables += "01";
  KILN_DECODED(gray, from_hex("ffd8ffe000104a46494600010100000100010000" + tables +
                              "ffc0000b080001000201011100ffc40014000100000000000000000000000000000009ffc400141001"
                              "00000000000000000000000000000000ffda0008010100003f0019dfffd9"));
  EXPECT_THAT(bytes_of(gray), ElementsAre(77, 77, 77, 77, 77, 77));
  EXPECT_THAT(
      bytes_of(decoded(from_hex("ffd8ffee000e41646f626500640000000000" + tables +
                                "ffc000140800010002044311004d11005911004b1100ffc4001600010101000000000000000000000000"
                                "000a000bffc40014100100000000000000000000000000000000ffda000e0443004d0059004b00003f00"
                                "7f099ff9203fffd9"))),
      ElementsAre(200, 100, 0, 200, 100, 0));
}

TEST(import_images, bytes_that_are_no_image_give_an_empty_one) {
  for (const char* text :
       {"", "P6 3 2 255\n12", "BM and then nothing that is a header", "GIF89a", "P3 1 1 255 256 0 0"})
    EXPECT_EQ(lens_of(decoded(bytes_of(text))), (std::vector<std::int64_t>{0, 0, 3})) << text;
  EXPECT_EQ(lens_of(decoded(bytes_of("none"), "Grayscale")), (std::vector<std::int64_t>{0, 0, 1}));
}

}  // namespace
}  // namespace kiln::test
