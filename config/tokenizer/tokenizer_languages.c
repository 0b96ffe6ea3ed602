/* tokenizer_languages: the lists, in the order of fairseq's dictionaries; languages by the form of
 * their tokens. */
#include "config/tokenizer/tokenizer_languages.h"

#include <ctype.h>
#include <string.h>

#include "config/tokenizer/tokenizer_parts.h"

const char tokenizer_languages_m2m100[] =
    "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl "
    "gu ha he hi hr ht hu hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml "
    "mn mr ms my ne nl no ns oc or pa pl ps pt ro ru sd si sk sl so sq sr ss su sv sw ta th "
    "tl tn tr uk ur uz vi wo xh yi yo zh zu ";

const char tokenizer_languages_wmt21[] = "en ha is ja cs ru zh de ";

const char tokenizer_languages_nllb[] =
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

/* Is it a code as NLLB and mBART have them: "fra_Latn", "fr_XX"? */
static bool is_code(const char *text, size_t length) {
  const char *bar = memchr(text, '_', length);
  const size_t before = bar ? (size_t)(bar - text) : 0, after = length - before - 1;
  bool good = (before == 2 || before == 3) && (after == 2 || after == 4);
  for (size_t i = 0; i < before && good; i++) good = islower((unsigned char)text[i]);
  for (size_t i = 0; i < after && good; i++)
    good = (i == 0 || after == 2 ? isupper : islower)((unsigned char)bar[1 + i]);
  return good;
}

/* Is it a code between two marks? Then *out is the code. */
static bool is_between(const struct added_token *t, const char *first, const char *last,
                       struct tokenizer_language *out) {
  if (t->length <= 4 || memcmp(t->content, first, 2) != 0 ||
      memcmp(t->content + t->length - 2, last, 2) != 0)
    return false;
  out->code = t->content + 2;
  out->length = t->length - 4;
  return true;
}

bool tokenizer_next_language(const struct tokenizer *t, size_t *at,
                             struct tokenizer_language *out) {
  while (*at < t->added.count) {
    const struct added_token *one = &t->added.token[(*at)++];
    *out = (struct tokenizer_language){.id = one->id, .code = one->content, .length = one->length};
    out->before = is_between(one, ">>", "<<", out);
    if (out->before) return true;
    if (one->special && (is_code(one->content, one->length) || is_between(one, "__", "__", out)))
      return true;
  }
  return false;
}
