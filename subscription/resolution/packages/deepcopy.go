// SPDX-License-Identifier: Apache-2.0

package packages

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// DeepCopy returns a deep copy of m. In the copy, channels do not share a CSVDescription.
func (m *PackageManifest) DeepCopy() *PackageManifest {
	if m == nil {
		return nil
	}
	out := *m
	m.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Status.Deprecation = clone(m.Status.Deprecation)
	out.Status.Channels = slices.Clone(m.Status.Channels)
	for i, ch := range out.Status.Channels {
		ch.CurrentCSVDesc, ch.Deprecation, ch.Entries = ch.CurrentCSVDesc.DeepCopy(), clone(ch.Deprecation), slices.Clone(ch.Entries)
		for j := range ch.Entries {
			ch.Entries[j].Deprecation = clone(ch.Entries[j].Deprecation)
		}
		out.Status.Channels[i] = ch
	}
	return &out
}

// DeepCopyObject implements runtime.Object.
func (m *PackageManifest) DeepCopyObject() runtime.Object { return m.DeepCopy() }

// DeepCopy returns a deep copy of d.
func (d *CSVDescription) DeepCopy() *CSVDescription {
	if d == nil {
		return nil
	}
	out := *d
	out.Icon, out.Annotations, out.Keywords = slices.Clone(d.Icon), maps.Clone(d.Annotations), slices.Clone(d.Keywords)
	out.Links, out.Maintainers, out.InstallModes = slices.Clone(d.Links), slices.Clone(d.Maintainers), slices.Clone(d.InstallModes)
	out.NativeAPIs, out.RelatedImages = slices.Clone(d.NativeAPIs), slices.Clone(d.RelatedImages)
	d.CustomResourceDefinitions.DeepCopyInto(&out.CustomResourceDefinitions)
	d.APIServiceDefinitions.DeepCopyInto(&out.APIServiceDefinitions)
	return &out
}

// DeepCopyObject implements runtime.Object.
func (l *PackageManifestList) DeepCopyObject() runtime.Object {
	out := *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = slices.Clone(l.Items)
	for i := range out.Items {
		out.Items[i] = *out.Items[i].DeepCopy()
	}
	return &out
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	return new(*p)
}
