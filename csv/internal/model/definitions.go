// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/olmcore/olm/olmcore"
)

// DescribesCRD reports whether a list of owned or required CRDs of a CSV contains the CRD with the given name.
func DescribesCRD(list []v1alpha1.CRDDescription, name string) bool {
	return slices.ContainsFunc(list, func(d v1alpha1.CRDDescription) bool { return d.Name == name })
}

// OwnedCRDNames returns the names of the CRDs that a CSV lists as owned.
func OwnedCRDNames(c *CSV) sets.Set[string] {
	names := sets.New[string]()
	for _, d := range c.Spec.CustomResourceDefinitions.Owned {
		names.Insert(d.Name)
	}
	return names
}

// DescribesAnyCRD reports whether a list of owned or required CRDs contains one of the names.
func DescribesAnyCRD(list []v1alpha1.CRDDescription, names sets.Set[string]) bool {
	return slices.ContainsFunc(list, func(d v1alpha1.CRDDescription) bool { return names.Has(d.Name) })
}

// InstalledAlongside returns the CSVs that a CRD was installed with. InstallPlans record these CSVs in annotations of
// the CRD as <namespace>/<name>.
func InstalledAlongside(crd *apiextensionsv1.CustomResourceDefinition) []types.NamespacedName {
	const prefix = "operatorframework.io/installed-alongside-"
	var noted []types.NamespacedName
	for key, value := range crd.Annotations {
		namespace, name, ok := strings.Cut(value, "/")
		if strings.HasPrefix(key, prefix) && ok && name != "" && !strings.Contains(name, "/") {
			noted = append(noted, types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
	return noted
}

// ConflictingOwner returns a CSV of another namespace that a CRD was also installed with. If there are several, it
// returns the first by namespace and name. If there is none, it returns the zero value. isConfined is true if the
// OperatorGroup of the namespace names a ServiceAccount.
//
// If isConfined is false and olmcore.AnnotationFirstInstalledBy names this namespace, the result is the zero value. So
// the first operator stays the owner if an InstallPlan of another namespace installs the same CRD later. If isConfined
// is true, the annotation is ignored, because a tenant may have installed the CRD of another operator before that
// operator was installed.
func ConflictingOwner(crd *apiextensionsv1.CustomResourceDefinition, namespace string, isConfined bool) (owner types.NamespacedName) {
	if !isConfined && crd.Annotations[olmcore.AnnotationFirstInstalledBy] == namespace {
		return owner
	}
	for _, key := range InstalledAlongside(crd) {
		if key.Namespace != namespace && (owner.Name == "" || key.String() < owner.String()) {
			owner = key
		}
	}
	return owner
}

// IsInstalledWith reports whether annotations or owner labels of a CRD record that the CRD was installed with this CSV.
func IsInstalledWith(c *CSV, crd *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.Contains(InstalledAlongside(crd), types.NamespacedName{Namespace: c.Namespace, Name: c.Name}) ||
		OwnerWithUID(c).Owns(crd.Labels)
}

// AnnotationConvertedBy is an annotation of a CRD that calls an operator for conversions. Its value is the CSV that set
// the conversion, as <namespace>/<name>. It is used to remove the operator from the CRD later.
const AnnotationConvertedBy = olmcore.KeyPrefix + "converted-by"

// IsConverter reports whether AnnotationConvertedBy of a CRD names the CSV.
func IsConverter(c *CSV, crd *apiextensionsv1.CustomResourceDefinition) bool {
	return crd.Annotations[AnnotationConvertedBy] == c.Namespace+"/"+c.Name
}

// Converter returns the CSV that AnnotationConvertedBy of a CRD names, or the zero value if there is none.
func Converter(crd *apiextensionsv1.CustomResourceDefinition) types.NamespacedName {
	namespace, name, ok := strings.Cut(crd.Annotations[AnnotationConvertedBy], "/")
	if !ok {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// Converters returns the CSVs that a CRD was installed with, and the CSV that AnnotationConvertedBy names.
func Converters(crd *apiextensionsv1.CustomResourceDefinition) []types.NamespacedName {
	all := InstalledAlongside(crd)
	if converter := Converter(crd); converter.Name != "" {
		all = append(all, converter)
	}
	return all
}

// MayConvert reports whether a CSV may change the conversion of a CRD. The CRD must have been installed with the CSV,
// or its AnnotationConvertedBy must name the CSV.
func MayConvert(c *CSV, crd *apiextensionsv1.CustomResourceDefinition) bool {
	return IsInstalledWith(c, crd) || IsConverter(c, crd)
}
