/* whole_role: the table of roles. */
#include "config/family/whole_role.h"

const struct whole_role_row whole_roles[WHOLE_ROLES] = {
#define ROW(id, kind, block, number)              [WHOLE_##id] = {WHOLE_IS_##kind, WHOLE_OF_##block, number},
#define WHOLE_LAYER(id, kind, block, number, ...) ROW(id, kind, block, number)
#define WHOLE_STACK(id, kind, block, number, ...) ROW(id, kind, block, number)
#include "config/family/whole_roles.def"
};
