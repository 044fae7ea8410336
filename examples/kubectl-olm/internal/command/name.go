// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/internal/spelling"
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
		if near := spelling.Nearest(resource, names); near != "" && !known {
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
