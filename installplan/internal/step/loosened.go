// SPDX-License-Identifier: Apache-2.0

package step

import (
	"maps"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// loosened returns the first field of an observed definition for which after accepts values that have refuses, empty
// for none. Fields that after adds do not count. A version that after adds or serves does: custom resources of it pass
// the validation of that version alone. The validation of a definition protects its operator, which may have more
// rights than whoever creates custom resources.
func loosened(have, after *apiextensionsv1.CustomResourceDefinition) string {
	known := after.DeepCopy()
	for i := range known.Spec.Versions {
		next := &known.Spec.Versions[i]
		old := versionOf(have, next.Name)
		path := "spec.versions[" + next.Name + "]"
		switch {
		case old == nil:
			return path + " (added)"
		case next.Served && !old.Served:
			return path + ".served"
		case next.Storage != old.Storage:
			return path + ".storage"
		case schemaOf(old) != nil && schemaOf(next) != nil:
			dropAdded(schemaOf(old), schemaOf(next))
		}
		next.SelectableFields = old.SelectableFields
	}
	return narrowed(known, have)
}

// dropAdded removes from a schema the fields that another schema does not have.
func dropAdded(old, next *apiextensionsv1.JSONSchemaProps) {
	maps.DeleteFunc(next.Properties, func(name string, _ apiextensionsv1.JSONSchemaProps) bool {
		_, known := old.Properties[name]
		return !known
	})
	for name, below := range next.Properties {
		was := old.Properties[name]
		dropAdded(&was, &below)
		next.Properties[name] = below
	}
	if old.Items != nil && next.Items != nil && old.Items.Schema != nil && next.Items.Schema != nil {
		dropAdded(old.Items.Schema, next.Items.Schema)
	}
	a, b := old.AdditionalProperties, next.AdditionalProperties
	if a != nil && b != nil && a.Schema != nil && b.Schema != nil {
		dropAdded(a.Schema, b.Schema)
	}
}

// keepShown gives the versions of after that have contains what clients show of them: printer columns and warnings.
func keepShown(have, after *apiextensionsv1.CustomResourceDefinition) {
	for i := range after.Spec.Versions {
		next := &after.Spec.Versions[i]
		if old := versionOf(have, next.Name); old != nil {
			old = old.DeepCopy()
			next.Deprecated, next.DeprecationWarning = old.Deprecated, old.DeprecationWarning
			next.AdditionalPrinterColumns = old.AdditionalPrinterColumns
		}
	}
}
