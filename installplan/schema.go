// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/olmcore/olm/olmcore"
)

const maxVerdicts = 100

// brokenResources says which custom resources a new schema would make invalid.
// Versions whose schema stays the same, and resources that are invalid already,
// do not count.
func (e *evaluation) brokenResources(have, desired *apiextensionsv1.CustomResourceDefinition) string {
	verdicts := e.verdictsOf(have.Name)
	converted := desired.Spec.Conversion != nil && desired.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
	var problems []string
	for _, v := range verdicts {
		before, after := versionOf(have, v.Version), versionOf(desired, v.Version)
		if before == nil || after == nil || !before.Served || !after.Served || apiequality.Semantic.DeepEqual(before.Schema, after.Schema) {
			continue
		}
		id := v.Name
		if v.Namespace != "" {
			id = v.Namespace + "/" + v.Name
		}
		switch {
		case v.ReadError != "":
			problems = append(problems, v.ReadError)
		case len(v.New) == 0:
		case len(v.Old) > 0:
			e.d.diagnose(olmcore.Info, ReasonExistingResourceInvalid, "", "%s %s is invalid already: %s", have.Spec.Names.Kind, id, strings.Join(v.Old, ", "))
		case converted:
			e.d.warn(ReasonExistingResourceInvalid, "", "%s %s is invalid under the new schema: %s", have.Spec.Names.Kind, id, strings.Join(v.New, ", "))
		default:
			gvk := fmt.Sprintf("%s/%s, Kind=%s", have.Spec.Group, v.Version, have.Spec.Names.Kind)
			problems = append(problems, fmt.Sprintf("error validating %s %q: updated validation is too restrictive: [%s]", gvk, id, strings.Join(v.New, ", ")))
		}
	}
	if len(problems) == 0 {
		return ""
	}
	return fmt.Sprintf("error validating existing CRs against new CRD's schema for %q: %s", have.Name, strings.Join(problems, "; "))
}

func (e *evaluation) verdictsOf(crd string) []ResourceVerdict {
	var verdicts []ResourceVerdict
	for _, v := range e.d.in.CustomResources {
		if v.CustomResourceDefinition == crd {
			verdicts = append(verdicts, v)
		}
	}
	slices.SortFunc(verdicts, func(a, b ResourceVerdict) int {
		return cmp.Or(strings.Compare(a.Version, b.Version), strings.Compare(a.Namespace, b.Namespace),
			strings.Compare(a.Name, b.Name), strings.Compare(a.ReadError, b.ReadError))
	})
	if len(verdicts) > maxVerdicts {
		e.d.diagnose(olmcore.Info, ReasonTruncated, "", "%d of %d judgements of custom resources of %s are looked at", maxVerdicts, len(verdicts), crd)
		verdicts = verdicts[:maxVerdicts]
	}
	return verdicts
}

func versionOf(crd *apiextensionsv1.CustomResourceDefinition, name string) *apiextensionsv1.CustomResourceDefinitionVersion {
	for i := range crd.Spec.Versions {
		if crd.Spec.Versions[i].Name == name {
			return &crd.Spec.Versions[i]
		}
	}
	return nil
}
