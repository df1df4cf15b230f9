"""Invented prose in English and Chinese for benchmark rows: seeded, as varied as web text.

Noun phrases are drawn from tens of thousands, so that zstd finds about as little to repeat in the
text as it does in real search results; a topic of some hundred of them keeps one row coherent.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

NOUN_PHRASE_COUNT = 40_000
ADVERBIAL_COUNT = 15_000
PERSON_COUNT = 6_000
PLACE_COUNT = 6_000


@dataclass(frozen=True)
class Topic:
    """What one row talks about: the noun phrases its sentences draw from."""

    noun_phrases: list[str]
    adverbials: list[str]


@dataclass(frozen=True)
class Prose:
    """The phrases of one language, and how to put sentences together from them."""

    language: str
    noun_phrases: list[str]
    verb_phrases: list[str]
    adverbials: list[str]
    people: list[str]
    places: list[str]

    def topic(self, rng: random.Random, size: int) -> Topic:
        """Choose what a row is about."""
        return Topic(rng.choices(self.noun_phrases, k=size), rng.choices(self.adverbials, k=size))

    def sentences(self, rng: random.Random, topic: Topic, count: int) -> list[str]:
        """Write `count` sentences about the topic."""
        write = _chinese_sentence if self.language == "zh" else _english_sentence
        subjects = rng.choices(topic.noun_phrases, k=count)
        verbs = rng.choices(self.verb_phrases, k=2 * count)
        # Half of the objects come from outside the topic: pages wander off.
        objects = rng.choices(topic.noun_phrases, k=count // 2)
        objects += rng.choices(self.noun_phrases, k=count - len(objects))
        adverbials = rng.choices(topic.adverbials, k=count // 2)
        adverbials += rng.choices(self.adverbials, k=count - len(adverbials))
        rng.shuffle(objects)
        rng.shuffle(adverbials)
        return [
            write(rng.random(), rng.randrange(3, 998), subject, verb, other, adverbial, verb_too)
            for subject, verb, other, adverbial, verb_too in zip(
                subjects, verbs, objects, adverbials, verbs[count:]
            )
        ]

    def text(self, rng: random.Random, topic: Topic, count: int) -> str:
        """Write `count` sentences in one paragraph."""
        return ("" if self.language == "zh" else " ").join(self.sentences(rng, topic, count))


def english_prose(seed: int) -> Prose:
    """Make the English phrases of a seed."""
    rng = random.Random(f"english/{seed}")
    places = [_english_place(rng) for _ in range(PLACE_COUNT)]
    people = [f"{_english_name(rng)} {_english_name(rng)}" for _ in range(PERSON_COUNT)]
    return Prose(
        language="en",
        noun_phrases=[_english_noun_phrase(rng, people, places) for _ in range(NOUN_PHRASE_COUNT)],
        verb_phrases=[f"{aid}{verb}".strip() for aid in _ENGLISH_AIDS for verb in _ENGLISH_VERBS],
        adverbials=[_english_adverbial(rng, people, places) for _ in range(ADVERBIAL_COUNT)],
        people=people,
        places=places,
    )


def chinese_prose(seed: int) -> Prose:
    """Make the Chinese phrases of a seed."""
    rng = random.Random(f"chinese/{seed}")
    places = [_chinese_place(rng) for _ in range(PLACE_COUNT)]
    people = [_chinese_person(rng) for _ in range(PERSON_COUNT)]
    return Prose(
        language="zh",
        noun_phrases=[_chinese_noun_phrase(rng, people, places) for _ in range(NOUN_PHRASE_COUNT)],
        verb_phrases=[f"{aid}{verb}" for aid in _CHINESE_AIDS for verb in _CHINESE_VERBS],
        adverbials=[_chinese_adverbial(rng, people, places) for _ in range(ADVERBIAL_COUNT)],
        people=people,
        places=places,
    )


def capitalised(text: str) -> str:
    """Upper-case the first letter and leave the rest."""
    return text[:1].upper() + text[1:]


def _english_sentence(
    draw: float, number: int, subject: str, verb: str, other: str, adverbial: str, verb_too: str
) -> str:
    if draw < 0.35:
        return f"{capitalised(subject)} {verb} {other} {adverbial}."
    if draw < 0.6:
        return f"{capitalised(adverbial)}, {subject} {verb} {other}."
    if draw < 0.75:
        return (
            f"{capitalised(subject)} {verb} {other}, and {verb_too} {number} of them {adverbial}."
        )
    if draw < 0.87:
        return f"{capitalised(subject)} ({number} in all) {verb} {other} {adverbial}."
    return f"It's said that {subject} {verb} {other}, though {adverbial} it {verb_too} no other."


def _chinese_sentence(
    draw: float, number: int, subject: str, verb: str, other: str, adverbial: str, verb_too: str
) -> str:
    if draw < 0.35:
        return f"{adverbial}，{subject}{verb}{other}。"
    if draw < 0.6:
        return f"{subject}{adverbial}{verb}{other}。"
    if draw < 0.75:
        return f"{subject}{verb}{other}，其中{number}处{adverbial}{verb_too}。"
    if draw < 0.87:
        return f"{subject}（共{number}件）{verb}{other}。"
    return f"相传{subject}{verb}{other}，但{adverbial}并未{verb_too}。"


def _english_name(rng: random.Random) -> str:
    parts = rng.choice((1, 2, 2))
    syllables = [rng.choice(_ONSETS) + rng.choice(_NUCLEI) for _ in range(parts)]
    # Real thoughts are ASCII nine times in ten, so accents must be rare in a single name.
    ending = rng.choice(_CODAS) if rng.random() < 0.997 else rng.choice("éöñ")
    return capitalised("".join(syllables) + ending)


def _english_place(rng: random.Random) -> str:
    return _english_name(rng) + rng.choice(_ENGLISH_PLACE_ENDINGS)


def _english_noun_phrase(rng: random.Random, people: list[str], places: list[str]) -> str:
    draw, noun = rng.random(), rng.choice(_ENGLISH_NOUNS)
    if draw < 0.4:
        return f"the {rng.choice(_ENGLISH_ADJECTIVES)} {noun} of {rng.choice(places)}"
    if draw < 0.6:
        return f"the {rng.choice(places)} {noun}"
    if draw < 0.8:
        adjective = rng.choice(_ENGLISH_ADJECTIVES)
        article = "an" if adjective[0] in "aeiou" else "a"
        return f"{article} {adjective} {noun} by {rng.choice(people)}"
    return rng.choice(people)


def _english_adverbial(rng: random.Random, people: list[str], places: list[str]) -> str:
    draw, year = rng.random(), rng.randrange(1580, 2025)
    if draw < 0.25:
        return f"in the {rng.choice(_ENGLISH_SEASONS)} of {year}"
    if draw < 0.5:
        return f"near {rng.choice(places)}"
    if draw < 0.7:
        return f"according to {rng.choice(people)}"
    return f"after the {rng.choice(_ENGLISH_ADJECTIVES)} {rng.choice(_ENGLISH_EVENTS)} of {year}"


def _chinese_person(rng: random.Random) -> str:
    return rng.choice(_SURNAMES) + "".join(rng.choices(_HAN, k=rng.choice((1, 2, 2))))


def _chinese_place(rng: random.Random) -> str:
    return "".join(rng.choices(_HAN, k=2)) + rng.choice(_CHINESE_PLACE_ENDINGS)


def _chinese_noun_phrase(rng: random.Random, people: list[str], places: list[str]) -> str:
    draw, noun = rng.random(), rng.choice(_CHINESE_NOUNS)
    if draw < 0.4:
        return f"{rng.choice(places)}的{rng.choice(_CHINESE_ADJECTIVES)}{noun}"
    if draw < 0.6:
        return f"{rng.choice(places)}{noun}"
    if draw < 0.8:
        return f"{rng.choice(people)}所撰的《{''.join(rng.choices(_HAN, k=3))}{noun}》"
    return rng.choice(people)


def _chinese_adverbial(rng: random.Random, people: list[str], places: list[str]) -> str:
    draw, year = rng.random(), rng.randrange(1580, 2025)
    if draw < 0.3:
        return f"于{year}年{rng.choice(_CHINESE_SEASONS)}"
    if draw < 0.55:
        return f"在{rng.choice(places)}附近"
    if draw < 0.75:
        return f"据{rng.choice(people)}记载"
    return f"在{year}年{rng.choice(_CHINESE_EVENTS)}之后"


def _words(text: str) -> list[str]:
    return text.split()


_ONSETS = _words(
    "b br c ch cl cr d dr f fl fr g gl gr h j k kl kr l m n p pl pr qu r s sc sh sk sl sm sn sp st "
    "str sv t th tr tw v w wh z zh"
)
_NUCLEI = _words("a e i o u ai au ea ei ie io oa oo ou ue y")
_CODAS = _words(
    "b ck d ld lf lm ln lt m mb n nd ng nk nt r rd rf rg rk rl rm rn rs rt s sk sp ss st t th x z "
    "bert bury dahl field ford gard lin man mar mond nar ric sen son stein ton vik wald win"
)
_ENGLISH_PLACE_ENDINGS = (
    "", "", "", " Bay", " Bridge", " County", " Falls", " Harbour", " Heath", " Hill", " Island",
    " Lake", " Moor", " Parish", " Point", " Province", " Ridge", " Springs", " Valley", " Wood",
    "borough", "burg", "by", "dale", "ham", "mouth", "stad", "stead", "ville", "worth",
)  # fmt: skip
_ENGLISH_NOUNS = _words(
    "abbey academy airfield almanac archive armoury arsenal atlas aqueduct ballad barracks basin "
    "bell brewery bridge brigade bulletin canal cannery castle catalogue cathedral causeway census "
    "chapel charter chronicle circus citadel clinic club colliery colony committee concerto "
    "convent council court dam dialect diary dictionary diocese dispensary dockyard dynasty "
    "election embassy encyclopaedia engine expedition factory fair ferry festival film fleet "
    "forge fort foundation foundry fountain frigate gallery garden gazette glacier granary guild "
    "harbour herbarium hospital hotel inn inscription institute journal laboratory lagoon ledger "
    "library lighthouse locomotive manor manuscript map market mausoleum memoir mill mine mint "
    "mission monastery monument mosaic museum navy newspaper novel nursery oath observatory "
    "opera orchard orchestra orphanage palace parish parliament pavilion pier playhouse polder "
    "portrait press priory prison quarry quartet railway reef reform regiment registry reservoir "
    "sanatorium schooner sculpture seminary shipyard shrine society sonata spire square stadium "
    "statue steamer survey symphony synagogue tannery tapestry telegraph temple textbook theatre "
    "tollhouse tower treaty tribunal trophy tunnel university vault viaduct vineyard wharf windmill"
)
_ENGLISH_ADJECTIVES = _words(
    "abandoned annual baroque bilingual botanical brick bronze celebrated ceremonial coastal "
    "colonial communal contested copper crowded damaged derelict disputed distant double early "
    "eastern elaborate enlarged experimental fabled fireproof first floating fortified forgotten "
    "former free gilded granite hidden illustrated imperial industrial inland iron joint large "
    "last late lesser listed lost marble maritime medieval merged military minor modern municipal "
    "narrow national neutral new northern octagonal official old open ornate painted partial "
    "pioneering popular private provincial public rare rebuilt regional restored royal ruined "
    "rural scholarly second secret short small southern steep stone submerged temporary tidal "
    "travelling twin underground unfinished unnamed upper vast vaulted walled western whitewashed "
    "wooden"
)
_ENGLISH_VERBS = _words(
    "acquired adjoined adopted advised annexed archived attracted auctioned borrowed catalogued "
    "challenged chartered commissioned compiled completed conducted consecrated contained copied "
    "criticised crossed defended demolished described designed directed donated edited enlarged "
    "established excavated financed founded governed hosted illustrated imitated influenced "
    "inherited inspected inspired joined leased mapped mentioned modelled named "
    "observed occupied opened outlived overlooked owned painted photographed predated preserved "
    "printed promoted published purchased rebuilt recorded renamed replaced restored revised "
    "sheltered sponsored studied succeeded supplied supported surveyed toured translated visited"
)
_ENGLISH_AIDS = (
    "", "", "first ", "later ", "never ", "reportedly ", "had ", "had already ", "jointly ",
    "briefly ", "officially ", "partly ",
)  # fmt: skip
_ENGLISH_SEASONS = _words(
    "spring summer autumn winter January February March April May June July August September "
    "October November December"
)
_ENGLISH_EVENTS = _words(
    "amnesty blockade coronation drought earthquake election epidemic exhibition famine fire flood "
    "mutiny plague rebellion referendum reform revolt secession siege storm strike treaty truce war"
)
_HAN = (
    "安白柏宝北碧滨波博沧昌长常晨成城澄川春淳翠大丹德登殿定东敦恩方丰峰凤福富刚高歌谷光广贵桂"
    "国海寒杭浩和河荷恒弘红鸿湖花华怀环黄惠慧吉纪佳嘉建江金锦京景静九军君开康可克空坤兰乐雷立"
    "丽连良林陵龙隆楼鲁陆禄罗洛满茂梅美孟明铭墨木牧南宁农盘培鹏平溥奇启前钱乔钦青清琼秋泉仁日"
    "荣儒瑞润森沙山善尚绍深沈胜诗石寿书树双水思松苏台泰潭棠涛天田铁廷通同望维伟文武西希溪熙夏"
    "仙贤香祥向孝新星兴修秀旭轩雪雅延岩燕阳耀叶一仪宜义益英颖永勇余雨玉裕元远岳云泽增湛章兆哲"
    "贞珍振正之志治致中忠洲竹柱卓子紫宗祖"
)
_SURNAMES = "赵钱孙李周吴郑王冯陈褚卫蒋沈韩杨朱秦尤许何吕施张孔曹严华金魏陶姜戚谢邹喻柏水窦章"
_CHINESE_PLACE_ENDINGS = _words("县 镇 村 河 山 湖 岛 湾 州 府 寨 乡 桥 关 港 岭")
_CHINESE_NOUNS = _words(
    "灯塔 县志 书院 码头 寺庙 铁路 报社 剧院 古桥 城墙 水库 矿区 学堂 博物馆 图书馆 天文台 "
    "植物园 造船厂 印刷所  纪念碑 运河 渡口 驿站 粮仓 教堂 祠堂 牌坊 钟楼 戏台 园林 画册 词典 "
    "诗集 年鉴 手稿 地图集 游记 家谱 碑文 医院  车站 机场 邮局 银行 旅馆 酒坊 茶庄 盐场 瓷窑 "
    "兵营 炮台 监狱 法院 议会 商会 协会 学报 电影 交响曲 地方戏 舰队"
)
_CHINESE_ADJECTIVES = _words(
    "旧 新 石砌 木结构 废弃 重建 早期 晚期 著名 罕见 地下 临时 官办 民间 首座 最后一座 双语 "
    "插图本 未完成 半毁  北部 南部 东部 西部 沿海 内陆 皇家 市立 私立 联合"
)
_CHINESE_VERBS = _words(
    "修建了 重修了 收藏了 记录了 翻译了 出版了 资助了 继承了 借用了 测绘了 命名了 描绘了 "
    "影响了 取代了 迁移了 拆除了  提到了 研究了 考察了 抄录了 拍卖了 捐赠了 管理了 兼并了 "
    "批评了 模仿了 校订了 展出了 保护了 发掘了"
)
_CHINESE_AIDS = (
    "", "", "首次", "后来", "曾经", "据说", "共同", "一度", "正式", "部分", "多次", "秘密",
)  # fmt: skip
_CHINESE_SEASONS = _words("春季 夏季 秋季 冬季 初 末 五月 六月 九月 十月 腊月")
_CHINESE_EVENTS = _words(
    "大火 洪水 地震 旱灾 围城 起义 兵变 停战 会议 选举 改革 博览会 瘟疫 饥荒 迁都 通商"
)
