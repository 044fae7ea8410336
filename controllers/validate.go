// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/olmcore/olm/olmcore"
)

// Validate returns an *olmcore.InputError for each Config that breaks its contract and for each namespace whose name is
// invalid, joined; nil for none. Field is the path below Options, such as Catalog.Replicas.
func (o *Options) Validate() error {
	errs := []error{
		below("Catalog", o.Catalog.Validate()),
		below("Subscription", o.Subscription.Validate()),
		below("InstallPlan", o.InstallPlan.Validate()),
		below("CSV", o.CSV.Validate()),
		validateOptional("GlobalNamespace", o.GlobalNamespace),
		validateOptional("Catalog.GlobalCatalogNamespace", o.Catalog.GlobalCatalogNamespace),
		validateOptional("InstallPlan.OLMNamespace", o.InstallPlan.OLMNamespace),
		validateOptional("InstallPlan.GlobalNamespace", o.InstallPlan.GlobalNamespace),
	}
	for i, name := range o.Namespaces {
		errs = append(errs, validateNamespace(fmt.Sprintf("Namespaces[%d]", i), name))
	}
	for i, name := range o.Copies.ProtectedNamespaces {
		errs = append(errs, validateNamespace(fmt.Sprintf("Copies.ProtectedNamespaces[%d]", i), name))
	}
	return errors.Join(errs...)
}

// below returns the error of a Config as one of the field of Options that has this Config.
func below(field string, err error) error {
	var input *olmcore.InputError
	if !errors.As(err, &input) {
		return err
	}
	return &olmcore.InputError{Field: field + strings.TrimPrefix(input.Field, "Config"), Problem: input.Problem}
}

// validateOptional is validateNamespace for a field that may be empty.
func validateOptional(field, name string) error {
	if name == "" {
		return nil
	}
	return validateNamespace(field, name)
}

func validateNamespace(field, name string) error {
	problems := validation.IsDNS1123Label(name)
	if len(problems) == 0 {
		return nil
	}
	return &olmcore.InputError{Field: field, Problem: fmt.Sprintf("is %q, which is no name of a namespace: %s", name, problems[0])}
}
