// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"fmt"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// specError says what in a CSV makes it unusable whatever the cluster offers;
// empty when nothing does. It does not allocate for a sound CSV whose selectors
// use matchLabels.
func specError(c *version) string {
	if len(c.Name) > maxLabelValue {
		return fmt.Sprintf("name %q has %d characters; at most %d are possible because it is used as a label value", c.Name, len(c.Name), maxLabelValue)
	}
	if !isLabelValue(c.Name) {
		return fmt.Sprintf("name %q cannot be used as a label value", c.Name)
	}
	for _, list := range [...][]v1alpha1.CRDDescription{c.Spec.CustomResourceDefinitions.Owned, c.Spec.CustomResourceDefinitions.Required} {
		for i := range list {
			if problem := crdDescriptionError(&list[i]); problem != "" {
				return problem
			}
		}
	}
	if problem := deploymentsError(c); problem != "" {
		return problem
	}
	return emptyAccount(c)
}

const maxLabelValue = 63

func isLabelValue(s string) bool {
	for i := range len(s) {
		letter := s[i]|0x20 >= 'a' && s[i]|0x20 <= 'z' || s[i] >= '0' && s[i] <= '9'
		if edge := i == 0 || i == len(s)-1; !letter && (edge || s[i] != '-' && s[i] != '_' && s[i] != '.') {
			return false
		}
	}
	return len(s) <= maxLabelValue
}

func crdDescriptionError(d *v1alpha1.CRDDescription) string {
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

func deploymentsError(c *version) string {
	specs := c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
	twice := repeated(len(specs), func(i int) string { return specs[i].Name })
	for i := range specs {
		d := &specs[i]
		if d.Name == "" {
			return fmt.Sprintf("deployments[%d]: name is empty", i)
		}
		if i == twice {
			return fmt.Sprintf("deployment %q listed twice", d.Name)
		}
		template := &d.Spec.Template
		switch {
		case isEmptySelector(d.Spec.Selector):
			return fmt.Sprintf("deployment %q has no selector", d.Name)
		case !selects(d.Spec.Selector, template.Labels):
			return fmt.Sprintf("deployment %q: the selector does not match the labels of its template", d.Name)
		case len(template.Spec.Containers) == 0:
			return fmt.Sprintf("deployment %q has no containers", d.Name)
		}
	}
	return ""
}

func isEmptySelector(s *metav1.LabelSelector) bool {
	return s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0
}

func selects(s *metav1.LabelSelector, have map[string]string) bool {
	for key, want := range s.MatchLabels {
		if value, ok := have[key]; !ok || value != want {
			return false
		}
	}
	if len(s.MatchExpressions) == 0 {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && selector.Matches(labels.Set(have))
}
