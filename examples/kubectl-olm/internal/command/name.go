// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// resources are what TYPE of TYPE/NAME may be, as kubectl has it.
var resources = map[string]schema.GroupVersionKind{
	"subscription": subscriptions, "subscriptions": subscriptions, "sub": subscriptions, "subs": subscriptions,
	"installplan": installPlans, "installplans": installPlans, "ip": installPlans,
	"clusterserviceversion": csvs, "clusterserviceversions": csvs, "csv": csvs, "csvs": csvs,
	"catalogsource": catalogs, "catalogsources": catalogs, "catsrc": catalogs,
}

// object is what NAME or TYPE/NAME asks about.
type object struct {
	// kind is empty when only a name was given.
	kind schema.GroupVersionKind
	name string
}

// parseObject reads NAME or TYPE/NAME, where TYPE may have the group behind it. The error names a TYPE that is near.
func parseObject(arg string) (object, error) {
	kind, name, typed := strings.Cut(arg, "/")
	if !typed {
		kind, name = "", arg
	}
	if name == "" || strings.ContainsAny(name, "/ \t\n") {
		return object{}, fmt.Errorf("%q is neither NAME nor TYPE/NAME", arg)
	}
	if !typed {
		return object{name: name}, nil
	}
	resource, group, grouped := strings.Cut(strings.ToLower(kind), ".")
	gvk, known := resources[resource]
	if !known || grouped && group != gvk.Group && group != gvk.Version+"."+gvk.Group {
		names := make([]string, 0, len(resources))
		for name := range resources {
			names = append(names, name)
		}
		hint := "it is one of subscription, installplan (ip), csv, catalogsource (catsrc)"
		if near := nearest(resource, names); near != "" && !known {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		return object{}, fmt.Errorf("%q: the type %q is not known: %s", arg, kind, hint)
	}
	return object{gvk, name}, nil
}

// parseWay reads SUBSCRIPTION or SUBSCRIPTION=BUNDLE.
func parseWay(arg string) (subscription, bundle string, err error) {
	subscription, bundle, aims := strings.Cut(arg, "=")
	if subscription == "" || aims && bundle == "" || strings.ContainsAny(arg, "/ \t\n") || strings.Contains(bundle, "=") {
		return "", "", fmt.Errorf("%q is neither SUBSCRIPTION nor SUBSCRIPTION=BUNDLE", arg)
	}
	return subscription, bundle, nil
}

// nearest returns the name that is most like another, the first of several; "" when none is near.
func nearest(name string, known []string) string {
	best, least := "", max(min(3, len(name)/2+1), len(name)/3+1) // of a short name one change makes another
	names := slices.Clone(known)
	slices.Sort(names)
	for _, candidate := range names {
		if abs(len(candidate)-len(name)) >= least {
			continue
		}
		if d := distance(name, candidate); d < least {
			best, least = candidate, d
		}
	}
	return best
}

func abs(n int) int { return max(n, -n) }

// distance is how many bytes have to be changed, added, left out or exchanged with the next to make one name the other.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			differs := 1
			if a[i-1] == b[j-1] {
				differs = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+differs)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
