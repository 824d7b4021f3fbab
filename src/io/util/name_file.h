/* name_file.h - gives a file that was opened without a name (O_TMPFILE) its
 * name, and replaces another file of that name.
 *
 * A link cannot replace a file, and a rename needs a name: it takes two calls,
 * and a process killed between them would leave the first name. Therefore a
 * second process makes these calls. It shares the first one's memory, is not in
 * its process group, and completes if the first one is killed; if it is killed
 * itself, the first one completes. Only if both end at the same moment, as when
 * a container or the machine stops, the first name can be left.
 */
#ifndef LB_NAME_FILE_H
#define LB_NAME_FILE_H

#include <stdbool.h>

/* A path by which the file can be linked and opened. */
typedef struct lb_fd_path {
    char s[32];
} lb_fd_path;
lb_fd_path lb_path_of_fd(int fd);

/* Whether the file has that name. */
bool lb_is_named(int fd, const char *path);

/* Names the file path, by way of the name first, in the same directory, if a
 * file of that name exists. 0, or errno of the call, with *call set to its
 * name; then the file has no name. EEXIST: first exists. */
int lb_name_file(int fd, const char *path, const char *first,
                 const char **call);

#endif
