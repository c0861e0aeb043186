/*-------------------------------------------------------------------------
 *
 * init.c
 *	  What join filters do when the library is loaded.
 *
 *-------------------------------------------------------------------------
 */
#include "join/join.h"

void
pgbloom_join_init(void)
{
	pgbloom_join_define_settings();
	RegisterCustomScanMethods(&pgbloom_join_scan_methods);
	pgbloom_join_install_planner();
	pgbloom_join_install_search();
	pgbloom_join_install_pathlist();
	pgbloom_join_install_executor();
	pgbloom_join_install_explain();
}
