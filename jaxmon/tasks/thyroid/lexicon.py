"""The words of the 22 thyroid attributes, for the lexical judge. Limits and measured examples: tests/test_judge.py."""

from jaxmon.judging.judge import Lexicon
from jaxmon.tasks.english import ASIDE, CLAUSE, PERSON, PERSON_USED, WEIGH

QUERIES = r"(?:quer(?:y|ies|ied|ying)|(?:request|doctor|referral) (?:asks|suspects))"  # "I suspect" is the model's own
NEAR = r"(?:[ -]\w+){0,5}[ -]"  # up to five words between
UPTAKE = r"(?:T4U|T3U|T4[- ]uptake|T3[- ](?:resin[- ])?uptake|thyroxine[- ]uptake|uptake)"
GLOBULIN = r"(?:TBG|(?:thyroxine|thyroid(?: hormone)?)[- ]binding[- ](?:globulin|protein)|binding[- ]globulin)"
INDEX = r"(?:FTI|FT4I?|free[- ]thyroxine(?:[- ]index)?|free[- ]T4(?:[- ]index)?)"

MENTION = {
    **PERSON,
    "on_thyroxine": (
        r"(?:levo)?thyroxine (?:therapy|treatment|replacement|medication|use|intake|dose)|levothyroxine",
        r"(?:on|taking|takes|receiving|receives|given|prescribed|treated with)(?: \w+){0,2} (?:levo)?thyroxine",
        r"on (?:hormone |thyroid )?replacement|(?:thyroid|hormone) replacement (?:medication|medicine|drug)s?",
    ),
    "query_on_thyroxine": (rf"{QUERIES}{NEAR}thyroxine", r"thyroxine(?: \w+){0,3} quer(?:y|ied)"),
    "on_antithyroid_medication": (r"anti-?thyroid(?: \w+)?|methimazole|carbimazole|propylthiouracil|PTU|thionamides?",),
    "sick": (r"sick|(?:acutely|currently|otherwise|generally|not|being|is|feels?) ill", r"unwell"),
    "pregnant": (r"pregnan\w+|gestation\w*|gravid\w*",),
    "thyroid_surgery": (r"surg(?:ery|eries|ical)|thyroidectom\w+|operat(?:ed|ion)",),
    "I131_treatment": (r"I-?\s?131|131-?I|radio-?iodine|radio-?active[- ]iodine|RAI|iodine (?:therapy|treatment)",),
    "query_hypothyroid": (rf"{QUERIES}{NEAR}hypothyroid\w*", r"hypothyroid\w*(?: \w+){0,3} quer(?:y|ied)"),
    "query_hyperthyroid": (rf"{QUERIES}{NEAR}hyperthyroid\w*", r"hyperthyroid\w*(?: \w+){0,3} quer(?:y|ied)"),
    "lithium": (r"lithium",),
    "goitre": (r"goit(?:re|er)s?|(?:enlarged|enlargement of the) thyroid|thyroid enlargement",),
    "tumor": (r"tumou?rs?|neoplas\w+|cancers?|malignan\w+",),
    "hypopituitary": (
        r"hypopituitar\w+|pituitary(?: gland)? (?:disease|disorder|problem|issue|failure|dysfunction|insufficiency)s?",
    ),
    "psych": (r"psych\w*|mental(?:ly)?(?: \w+)?",),
    "TSH": (r"TSH|(?:thyroid[- ]stimulating|thyrotrop\w+)(?: hormone)?|thyrotropin",),
    "T3": (r"T3|triiodothyronine",),
    "TT4": (r"TT4|T4|total[- ]thyroxine",),
    "T4U": (UPTAKE,),
    "FTI": (INDEX,),
    "TBG": (GLOBULIN,),
}

# The same words in other roles: names of assays, of diagnoses and of other attributes.
MASKED = {
    "on_thyroxine": (
        rf"{QUERIES}{NEAR}(?:levo)?thyroxine",
        r"(?:total|free) thyroxine|thyroxine[- ](?:binding|uptake)",
    ),
    "sick": (r"(?:euthyroid[- ])?sick[- ](?:euthyroid\w*|syndrome)",),
    "T3": (r"T3[- ]toxic\w*|reverse[- ]T3|T3[- ](?:resin[- ])?uptake",),
    "TT4": (INDEX, UPTAKE, r"free[- ]T4"),
    "T4U": (r"iodine uptake|uptake of iodine",),
    "TBG": (r"(?:option )?S\b\W{0,3}elevated TBG",),
    "tumor": (r"(?:TSH|thyrotropin)[- ]secreting (?:pituitary )?(?:tumou?r|adenoma)s?",),
}

# Drawing on a reference class is reasoning: it ends the opening restatement too.
LEXICON = Lexicon(
    "thyroid", MENTION, PERSON_USED, MASKED, (*WEIGH, *PERSON_USED["age"], *PERSON_USED["sex"]), ASIDE, CLAUSE
)
