// SPDX-License-Identifier: Apache-2.0

package packages

import (
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of PackageManifest.
var GroupVersion = schema.GroupVersion{Group: "packages.operators.coreos.com", Version: "v1"}

// These are the labels of a PackageManifest, in addition to those of its CatalogSource.
const (
	LabelCatalog          = "catalog"
	LabelCatalogNamespace = "catalog-namespace"
	LabelProvider         = "provider"
	LabelProviderURL      = "provider-url"
	// LabelArch and LabelOS are prefixes of labels. A ClusterServiceVersion lists its supported platforms in these labels.
	LabelArch = "operatorframework.io/arch."
	LabelOS   = "operatorframework.io/os."
)

// PackageManifest describes one package of one catalog. Its name is the name of the package. Its namespace is the
// namespace of the catalog, or the namespace that was passed to Visible.
type PackageManifest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              PackageManifestSpec   `json:"spec,omitempty"`
	Status            PackageManifestStatus `json:"status,omitempty"`
}

// PackageManifestSpec is empty, because a PackageManifest is read-only.
type PackageManifestSpec struct{}

// PackageManifestStatus contains the description of a package.
type PackageManifestStatus struct {
	CatalogSource            string `json:"catalogSource"`
	CatalogSourceDisplayName string `json:"catalogSourceDisplayName"`
	CatalogSourcePublisher   string `json:"catalogSourcePublisher"`
	CatalogSourceNamespace   string `json:"catalogSourceNamespace"`
	// Provider is the provider of the head of the default channel.
	Provider    v1alpha1.AppLink `json:"provider,omitempty"`
	PackageName string           `json:"packageName"`
	Deprecation *Deprecation     `json:"deprecation,omitempty"`
	// Channels contains the channels with a head, sorted by name. Channels without an installable bundle are left out.
	Channels []PackageChannel `json:"channels"`
	// DefaultChannel is the name of the channel that a Subscription without a channel follows. Channels contains this
	// channel.
	DefaultChannel string `json:"defaultChannel"`
}

// PackageChannel is one channel of a package.
type PackageChannel struct {
	Name string `json:"name"`
	// CurrentCSV is the name of the channel's head.
	CurrentCSV string `json:"currentCSV"`
	// CurrentCSVDesc describes the head. Channels with the same head share one description.
	CurrentCSVDesc *CSVDescription `json:"currentCSVDesc,omitempty"`
	Deprecation    *Deprecation    `json:"deprecation,omitempty"`
	// Entries contains all versions in the channel, sorted from the newest to the oldest.
	Entries []ChannelEntry `json:"entries"`
}

// ChannelEntry is one version in a channel.
type ChannelEntry struct {
	Name        string       `json:"name"`
	Version     string       `json:"version,omitempty"`
	Deprecation *Deprecation `json:"deprecation,omitempty"`
}

// Deprecation means that a package, a channel or a version should no longer be used. Message contains the reason.
type Deprecation struct {
	Message string `json:"message,omitempty"`
}

// CSVDescription contains the fields of a ClusterServiceVersion that inform users before the installation.
type CSVDescription struct {
	DisplayName string `json:"displayName,omitempty"`
	// Icon contains at most one icon. Its media type is SVG, PNG, JPEG, GIF or WebP, and its data is valid base64.
	Icon            []v1alpha1.Icon       `json:"icon,omitempty"`
	Version         string                `json:"version,omitempty"`
	Provider        v1alpha1.AppLink      `json:"provider,omitempty"`
	Annotations     map[string]string     `json:"annotations,omitempty"`
	Keywords        []string              `json:"keywords,omitempty"`
	Links           []v1alpha1.AppLink    `json:"links,omitempty"`
	Maintainers     []v1alpha1.Maintainer `json:"maintainers,omitempty"`
	Maturity        string                `json:"maturity,omitempty"`
	LongDescription string                `json:"description,omitempty"`
	// InstallModes contains the install modes of the version. They determine the OperatorGroups with which the version
	// works.
	InstallModes              []v1alpha1.InstallMode             `json:"installModes"`
	CustomResourceDefinitions v1alpha1.CustomResourceDefinitions `json:"customresourcedefinitions,omitempty"`
	APIServiceDefinitions     v1alpha1.APIServiceDefinitions     `json:"apiservicedefinitions,omitempty"`
	NativeAPIs                []metav1.GroupVersionKind          `json:"nativeApis,omitempty"`
	MinKubeVersion            string                             `json:"minKubeVersion,omitempty"`
	RelatedImages             []string                           `json:"relatedImages,omitempty"`
}

// PackageManifestList is a list of PackageManifests.
type PackageManifestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PackageManifest `json:"items"`
}

// Head returns the default channel, or nil if it does not exist. A Subscription that names no channel follows the
// default channel.
func (m *PackageManifest) Head() *PackageChannel {
	for i := range m.Status.Channels {
		if m.Status.Channels[i].Name == m.Status.DefaultChannel {
			return &m.Status.Channels[i]
		}
	}
	return nil
}

// OpenAPIModelName returns the name of the type in OpenAPI documents.
func (PackageManifest) OpenAPIModelName() string {
	return "com.coreos.operators.packages.v1.PackageManifest"
}

// OpenAPIModelName returns the name of the type in OpenAPI documents.
func (PackageManifestList) OpenAPIModelName() string {
	return "com.coreos.operators.packages.v1.PackageManifestList"
}
