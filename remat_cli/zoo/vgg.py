"""VGG (Simonyan and Zisserman, 2014), and the two segmentation networks built on VGG-16: FCN-8s and SegNet."""

from __future__ import annotations

from remat_cli.zoo.layers import IMAGES, Images, Net, need_multiple

LABELLED = Images(classes=21)  # whose pixels are told apart
BLOCKS = {16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}  # 3x3 convolutions before each of the five pools
WIDTHS = (64, 128, 256, 512, 512)


def vgg(net: Net, depth: int, images: Images = IMAGES, hidden: int = 4096) -> str:
    x = net.input("input", images.shape)
    layer = 0  # torchvision's numbering, which counts every Conv, Relu and MaxPool
    for convolutions, width in zip(BLOCKS[depth], WIDTHS):
        for _ in range(convolutions):
            x = net.relu(net.conv_with_bias(x, f"features.{layer}", width, 3))
            layer += 2
        x = net.max_pool(x, f"features.{layer}", 2, 2)
        layer += 1
    x = net.flatten(_seven_by_seven(net, x))
    for number in (0, 3):
        x = net.relu(net.linear(x, f"classifier.{number}", hidden))
        x = net.dropout(x, f"classifier.{number + 2}")
    return net.linear(x, "classifier.6", images.classes)


def fcn8(net: Net, images: Images = LABELLED, hidden: int = 4096) -> str:
    """FCN-8s (Long et al., 2015), padded to the image's size rather than by 100 and cropped; logits in NHWC."""
    need_multiple(images.image, 32, "fcn8")
    x = net.input("input", images.shape)
    pools = []
    for block, (convolutions, width) in enumerate(zip(BLOCKS[16], WIDTHS), 1):
        for number in range(1, convolutions + 1):
            x = net.relu(net.conv_with_bias(x, f"conv{block}_{number}", width, 3))
        x = net.max_pool(x, f"pool{block}", 2, 2)
        pools.append(x)
    x = net.dropout(net.relu(net.conv_with_bias(x, "fc6", hidden, 7)), "drop6")
    x = net.dropout(net.relu(net.conv_with_bias(x, "fc7", hidden, 1)), "drop7")
    x = net.conv_with_bias(x, "score_fr", images.classes, 1)
    for number, pool in ((4, pools[3]), (3, pools[2])):
        up = net.conv_transpose(x, f"upscore_pool{number}", images.classes, 4, 2, bias=False)
        x = net.add(up, net.conv_with_bias(pool, f"score_pool{number}", images.classes, 1), f"fuse_pool{number}")
    x = net.conv_transpose(x, "upscore8", images.classes, 16, 8, bias=False)
    return net.classes_last(x, "score")


def segnet(net: Net, images: Images = LABELLED) -> str:
    """SegNet (Badrinarayanan et al., 2015): the decoder unpools where the encoder's maxima were; logits in NHWC."""
    need_multiple(images.image, 32, "segnet")
    x = net.input("input", images.shape)
    places = []
    for block, (convolutions, width) in enumerate(zip(BLOCKS[16], WIDTHS), 1):
        for number in range(1, convolutions + 1):
            x = _conv_norm_relu(net, x, f"encoder{block}_{number}", width)
        x, indices = net.max_pool_indices(x, f"pool{block}")
        places.append(indices)
    for block in (5, 4, 3, 2, 1):
        x = net.max_unpool(x, places[block - 1], f"unpool{block}")
        for number in range(BLOCKS[16][block - 1], 1, -1):
            x = _conv_norm_relu(net, x, f"decoder{block}_{number}", WIDTHS[block - 1])
        if block > 1:
            x = _conv_norm_relu(net, x, f"decoder{block}_1", WIDTHS[block - 2])
    x = net.conv_with_bias(x, "decoder1_1", images.classes, 3)
    return net.classes_last(x, "score")


def _conv_norm_relu(net: Net, x: str, name: str, channels: int) -> str:
    return net.relu(net.batch_norm(net.conv_with_bias(x, f"{name}.conv", channels, 3), f"{name}.bn"))


def _seven_by_seven(net: Net, x: str) -> str:
    """torchvision's adaptive pool where it is a plain one; images that give 7x7 or less pass as they are."""
    height, width = net.shapes[x][2:]
    if height == width > 7 and height % 7 == 0:
        return net.average_pool(x, "avgpool", height // 7, height // 7)
    return x
