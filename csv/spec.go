// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/olmcore/olm/csv/internal/model"
	internalserving "github.com/olmcore/olm/csv/internal/serving"
)

// first returns the first problem that check finds in a list, or an empty string if there is none.
func first[T any](list []T, check func(i int, item *T) string) string {
	for i := range list {
		if problem := check(i, &list[i]); problem != "" {
			return problem
		}
	}
	return ""
}

// specError returns why the spec of a CSV is invalid, whatever the cluster contains. It is empty if the spec is valid.
func specError(c *version) string {
	spec := &c.Spec.InstallStrategy.StrategySpec
	noAccount := func(field string) func(int, *v1alpha1.StrategyDeploymentPermissions) string {
		return func(i int, p *v1alpha1.StrategyDeploymentPermissions) string {
			if p.ServiceAccountName == "" {
				return fmt.Sprintf("%s[%d]: serviceAccountName is empty", field, i)
			}
			return ""
		}
	}
	seen := map[string]bool{}
	return cmp.Or(
		nameError(c.Name),
		first(c.Spec.CustomResourceDefinitions.Owned, definitionError),
		first(c.Spec.CustomResourceDefinitions.Required, definitionError),
		first(spec.DeploymentSpecs, func(i int, d *v1alpha1.StrategyDeploymentSpec) string { return deploymentError(i, d, seen) }),
		first(spec.Permissions, noAccount("permissions")),
		first(spec.ClusterPermissions, noAccount("clusterPermissions")),
		internalserving.ProblemOfAPIServices(c),
	)
}

func nameError(name string) string {
	switch {
	case len(name) > validation.LabelValueMaxLength:
		return fmt.Sprintf("name %q has %d characters; at most %d are possible because it is used as a label value",
			name, len(name), validation.LabelValueMaxLength)
	case !model.IsLabelValue(name):
		return fmt.Sprintf("name %q cannot be used as a label value", name)
	}
	return ""
}

func definitionError(_ int, d *v1alpha1.CRDDescription) string {
	plural, group, _ := strings.Cut(d.Name, ".")
	switch {
	case plural == "" || group == "":
		return fmt.Sprintf("invalid CRD name %q: want <plural>.<group>", d.Name)
	case d.Version == "":
		return fmt.Sprintf("CRD %s is described without a version", d.Name)
	case d.Kind == "":
		return fmt.Sprintf("CRD %s is described without a kind", d.Name)
	}
	return ""
}

func deploymentError(i int, d *v1alpha1.StrategyDeploymentSpec, seen map[string]bool) string {
	if seen[d.Name] {
		return fmt.Sprintf("deployment %q listed twice", d.Name)
	}
	seen[d.Name] = true
	template := &d.Spec.Template
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	switch {
	case d.Name == "":
		return fmt.Sprintf("deployments[%d]: name is empty", i)
	case d.Spec.Selector == nil || len(d.Spec.Selector.MatchLabels)+len(d.Spec.Selector.MatchExpressions) == 0:
		return fmt.Sprintf("deployment %q has no selector", d.Name)
	case err != nil || !selector.Matches(labels.Set(template.Labels)):
		return fmt.Sprintf("deployment %q: the selector does not match the labels of its template", d.Name)
	case len(template.Spec.Containers) == 0:
		return fmt.Sprintf("deployment %q has no containers", d.Name)
	}
	return ""
}
