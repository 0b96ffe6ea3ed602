/* sentence_family: the table of families, and the languages of multilingual translators whose
 * tokens no file lists, in the order of fairseq's dictionaries. */
#include "config/family/sentence_family.h"

#include <stddef.h>
#include <string.h>

#include "config/document/text.h"

/* --- languages --- */

static const char languages_m2m100[] =
    "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl "
    "gu ha he hi hr ht hu hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml "
    "mn mr ms my ne nl no ns oc or pa pl ps pt ro ru sd si sk sl so sq sr ss su sv sw ta th "
    "tl tn tr uk ur uz vi wo xh yi yo zh zu ";

static const char languages_wmt21[] = "en ha is ja cs ru zh de ";

static const char languages_nllb[] =
    "ace_Arab ace_Latn acm_Arab acq_Arab aeb_Arab afr_Latn ajp_Arab aka_Latn amh_Ethi "
    "apc_Arab arb_Arab ars_Arab ary_Arab arz_Arab asm_Beng ast_Latn awa_Deva ayr_Latn "
    "azb_Arab azj_Latn bak_Cyrl bam_Latn ban_Latn bel_Cyrl bem_Latn ben_Beng bho_Deva "
    "bjn_Arab bjn_Latn bod_Tibt bos_Latn bug_Latn bul_Cyrl cat_Latn ceb_Latn ces_Latn "
    "cjk_Latn ckb_Arab crh_Latn cym_Latn dan_Latn deu_Latn dik_Latn dyu_Latn dzo_Tibt "
    "ell_Grek eng_Latn epo_Latn est_Latn eus_Latn ewe_Latn fao_Latn pes_Arab fij_Latn "
    "fin_Latn fon_Latn fra_Latn fur_Latn fuv_Latn gla_Latn gle_Latn glg_Latn grn_Latn "
    "guj_Gujr hat_Latn hau_Latn heb_Hebr hin_Deva hne_Deva hrv_Latn hun_Latn hye_Armn "
    "ibo_Latn ilo_Latn ind_Latn isl_Latn ita_Latn jav_Latn jpn_Jpan kab_Latn kac_Latn "
    "kam_Latn kan_Knda kas_Arab kas_Deva kat_Geor knc_Arab knc_Latn kaz_Cyrl kbp_Latn "
    "kea_Latn khm_Khmr kik_Latn kin_Latn kir_Cyrl kmb_Latn kon_Latn kor_Hang kmr_Latn "
    "lao_Laoo lvs_Latn lij_Latn lim_Latn lin_Latn lit_Latn lmo_Latn ltg_Latn ltz_Latn "
    "lua_Latn lug_Latn luo_Latn lus_Latn mag_Deva mai_Deva mal_Mlym mar_Deva min_Latn "
    "mkd_Cyrl plt_Latn mlt_Latn mni_Beng khk_Cyrl mos_Latn mri_Latn zsm_Latn mya_Mymr "
    "nld_Latn nno_Latn nob_Latn npi_Deva nso_Latn nus_Latn nya_Latn oci_Latn gaz_Latn "
    "ory_Orya pag_Latn pan_Guru pap_Latn pol_Latn por_Latn prs_Arab pbt_Arab quy_Latn "
    "ron_Latn run_Latn rus_Cyrl sag_Latn san_Deva sat_Beng scn_Latn shn_Mymr sin_Sinh "
    "slk_Latn slv_Latn smo_Latn sna_Latn snd_Arab som_Latn sot_Latn spa_Latn als_Latn "
    "srd_Latn srp_Cyrl ssw_Latn sun_Latn swe_Latn swh_Latn szl_Latn tam_Taml tat_Cyrl "
    "tel_Telu tgk_Cyrl tgl_Latn tha_Thai tir_Ethi taq_Latn taq_Tfng tpi_Latn tsn_Latn "
    "tso_Latn tuk_Latn tum_Latn tur_Latn twi_Latn tzm_Tfng uig_Arab ukr_Cyrl umb_Latn "
    "urd_Arab uzn_Latn vec_Latn vie_Latn war_Latn wol_Latn xho_Latn ydd_Hebr yor_Latn "
    "yue_Hant zho_Hans zho_Hant zul_Latn ";

/* --- the table --- */

static const struct sentence_family families[] = {
    {.types = " xlm-roberta ",
     .classes = " XLMRobertaTokenizer ",
     .role = {"<s>", "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>"},
     .single = "C1S",
     .pair = "C1SS2S",
     .strips = true,
     .before = {"<s>", "<pad>", "</s>", "<unk>"},
     .offset = 1},
    {.types = " camembert ",
     .classes = " CamembertTokenizer ",
     .role = {"<s>", "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>"},
     .single = "C1S",
     .pair = "C1SS2S",
     .strips = true,
     .before = {"<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED"},
     .offset = 4},
    {.types = " t5 mt5 ",
     .classes = " T5Tokenizer MT5Tokenizer ",
     .role = {[EOS] = "</s>", [UNK] = "<unk>", [PAD] = "<pad>"},
     .single = "1E",
     .pair = "1E2E",
     .extra = 100},
    {.types = " albert ",
     .classes = " AlbertTokenizer ",
     .role = {"[CLS]", "[SEP]", "<unk>", "[SEP]", "<pad>", "[CLS]", "[MASK]"},
     .single = "C1S",
     .pair = "C1S2S",
     .typed = true,
     .strips = true,
     .lowers = true,
     .plain = true},
    {.types = " deberta-v2 ",
     .classes = " DebertaV2Tokenizer ",
     .role = {"[CLS]", "[SEP]", "[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"},
     .single = "C1S",
     .pair = "C1S2S",
     .typed = true},
    {.types = " llama mistral ",
     .classes = " LlamaTokenizer ",
     .role = {"<s>", "</s>", "<unk>"},
     .single = "b1e",
     .pair = "b1eb2e",
     .typed = true},
    {.types = " gemma gemma2 gemma3_text gemma3 ",
     .classes = " GemmaTokenizer ",
     .role = {"<bos>", "<eos>", "<unk>", [PAD] = "<pad>"},
     .single = "b1e",
     .pair = "b1eb2e",
     .typed = true},
    {.types = " marian ",
     .classes = " MarianTokenizer ",
     .role = {[EOS] = "</s>", [UNK] = "<unk>", [PAD] = "<pad>"},
     .single = "1E",
     .pair = "12E",
     .listed = true},
    {.types = " m2m_100 ",
     .classes = " M2M100Tokenizer ",
     .role = {"<s>", "</s>", "<unk>", "</s>", "<pad>"},
     .single = "L1E",
     .pair = "L12E",
     .listed = true,
     .languages = languages_m2m100,
     .other = languages_wmt21,
     .language = "en",
     .around = "__"},
    {.types = "", /* m2m_100 */
     .classes = " NllbTokenizer ",
     .role = {"<s>", "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>"},
     .single = "L1E",
     .pair = "L12E",
     .strips = true,
     .before = {"<s>", "<pad>", "</s>", "<unk>"},
     .offset = 1,
     .languages = languages_nllb,
     .language = "eng_Latn",
     .around = ""},
};

static bool has_word(const char *words, const char *word, size_t length) {
  for (const char *at = words; (at = strstr(at, word)); at++)
    if (at > words && at[-1] == ' ' && at[length] == ' ') return true;
  return false;
}

/* Classes that may be of any family. */
static const char *const any = " PreTrainedTokenizer TokenizersBackend SentencePieceBackend ";

const struct sentence_family *sentence_family_find(const char *class, const char *type) {
  char name[64] = "";
  const size_t length = class ? strlen(class) : 0;
  const bool fast = class && text_ends_with(class, "Fast");
  if (length < sizeof name) memcpy(name, class ? class : "", length - (fast ? 4 : 0));
  for (size_t i = 0; i < sizeof families / sizeof *families; i++)
    if (*name && has_word(families[i].classes, name, strlen(name))) return &families[i];
  if (class && !(*name && has_word(any, name, strlen(name)))) return NULL;
  for (size_t i = 0; i < sizeof families / sizeof *families; i++)
    if (type && *type && has_word(families[i].types, type, strlen(type))) return &families[i];
  return NULL;
}
