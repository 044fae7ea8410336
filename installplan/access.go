// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/installplan/internal/message"
	"github.com/olmcore/olm/installplan/internal/step"
	"github.com/olmcore/olm/olmcore"
)

// Access is one thing that an identity must be allowed to do. Name is empty for
// create, where no rule can name an object, and Namespace for cluster-scoped
// resources.
type Access struct {
	Verb, Group, Resource, Namespace, Name string
}

// String returns e.g. "update services ops/web".
func (a Access) String() string {
	resource := a.Resource
	if a.Group != "" {
		resource += "." + a.Group
	}
	switch {
	case a.Namespace == "" && a.Name == "":
		return a.Verb + " " + resource
	case a.Name == "":
		return a.Verb + " " + resource + " in " + a.Namespace
	case a.Namespace == "":
		return a.Verb + " " + resource + " " + a.Name
	}
	return a.Verb + " " + resource + " " + a.Namespace + "/" + a.Name
}

// RequiredAccess returns what the ServiceAccount that a plan runs as must be
// allowed to do for all of its steps, sorted, each once: to read, create, update
// and patch every object but CustomResourceDefinitions, which the controller
// writes. Kinds that no definition in crds describes get the plural that their
// name suggests. So all that is missing can be asked for at once; see
// MissingPermissions. A nil plan requires nothing.
func RequiredAccess(plan *v1alpha1.InstallPlan, crds []*apiextensionsv1.CustomResourceDefinition) []Access {
	if plan == nil {
		return nil
	}
	var out []Access
	for _, s := range plan.Status.Plan {
		if s == nil || s.Resource.Name == "" || s.Resource.Kind == "" || s.Resource.Kind == kinds.CRD {
			continue
		}
		gvk := schema.GroupVersionKind{Group: s.Resource.Group, Version: s.Resource.Version, Kind: s.Resource.Kind}
		k, known := kinds.Known[s.Resource.Kind]
		namespaced := k.Namespaced
		if known {
			gvk = k.GVK
		}
		plural, _ := meta.UnsafeGuessKindToResource(gvk)
		access := Access{Group: gvk.Group, Resource: plural.Resource, Name: s.Resource.Name}
		if !known {
			api := kinds.LookUp(gvk, crds)
			namespaced = api.Namespaced || !api.Kind
			if api.By != nil && api.By.Spec.Names.Plural != "" {
				access.Resource = api.By.Spec.Names.Plural
			}
		}
		if namespaced {
			access.Namespace = plan.Namespace
		}
		for _, verb := range [...]string{"create", "get", "patch", "update"} {
			own := access
			if own.Verb = verb; verb == "create" {
				own.Name = ""
			}
			out = append(out, own)
		}
	}
	slices.SortFunc(out, func(a, b Access) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Resource, b.Resource), strings.Compare(a.Namespace, b.Namespace),
			strings.Compare(a.Name, b.Name), strings.Compare(a.Verb, b.Verb))
	})
	return slices.Compact(out)
}

// MissingPermissions reports what of RequiredAccess a caller found to be denied,
// in one Diagnostic; ok is false when nothing is.
func MissingPermissions(plan *v1alpha1.InstallPlan, denied []Access) (d olmcore.Diagnostic, ok bool) {
	if plan == nil || len(denied) == 0 {
		return d, false
	}
	account := "the controller"
	if ref := plan.Status.AttenuatedServiceAccountRef; ref != nil {
		account = "ServiceAccount " + ref.Namespace + "/" + ref.Name
	}
	texts := make([]string, len(denied))
	for i, a := range denied {
		texts[i] = a.String()
	}
	return olmcore.Diagnose(olmcore.Warning, ReasonMissingPermissions, olmcore.RefOf(plan), "",
		"%s", message.Clip(account+" may not "+strings.Join(texts, ", "))), true
}

// WarningDiagnostic reports the warnings that an API server answered to the write
// of the plan's step at index i; ok is false when there are none, or no such
// step.
//
// Source: operator-lifecycle-manager pkg/controller/operators/catalog, ExecutePlan.
func WarningDiagnostic(plan *v1alpha1.InstallPlan, i int, warnings []string) (d olmcore.Diagnostic, ok bool) {
	if plan == nil || i < 0 || i >= len(plan.Status.Plan) || plan.Status.Plan[i] == nil || len(warnings) == 0 {
		return d, false
	}
	s := plan.Status.Plan[i]
	text := strings.Join(warnings, ", ")
	said := fmt.Sprintf("%d warning(s) generated during operator installation (%s %q): %s", len(warnings), s.Resource.Kind, s.Resource.Name, text)
	if s.Resolving != "" {
		said = fmt.Sprintf("%d warning(s) generated during installation of operator %q (%s %q): %s",
			len(warnings), s.Resolving, s.Resource.Kind, s.Resource.Name, text)
	}
	return olmcore.Diagnose(olmcore.Warning, ReasonAppliedWithWarnings, olmcore.RefOf(plan), step.Path(i), "%s", message.Clip(said)), true
}
