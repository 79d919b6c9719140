//! Settings of DUTs as coordinates of cells, next to the axes of trials.
//!
//! Comparisons of cells that differ in one coordinate read it from here, whichever of the two it
//! is. To add a setting: a variant of [`Setting`], and its lines in [`Dut::apart`].

use crate::adapter::{Adapter, Dut, Encryptor, OpenVpn, StrongSwan, Xfrm};
use crate::axis::Axis;
use crate::cell::Cell;
use crate::software::Software;
use crate::value::Value;
use catalog::Choice;
use std::mem;
use wire::Suite;

/// A setting of a DUT that several DUTs of a campaign may differ in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// The suite of its packets.
    Suite,
    /// The engine that seals and opens.
    Engine,
    /// The source of its keys, with their lifetime.
    Keys,
    /// Worker threads per gateway.
    Workers,
    /// Tunnels, over which frames are spread.
    Tunnels,
    /// The version of its program or settings, by the campaign's name for it.
    Version,
}

/// A dimension in which cells differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dimension {
    /// An axis of trials.
    Axis(Axis),
    /// A setting of the DUT.
    Setting(Setting),
}

/// All that cells of a series along one dimension share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Common {
    /// The group without the dimension.
    pub group: String,
    dut: CommonDut,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum CommonDut {
    /// One DUT, by its name.
    Named(String),
    /// All settings but one, without the name.
    Settings(Box<Dut>),
}

impl Dut {
    /// Takes a setting apart: its value, and the DUT without it and without a name. DUTs that
    /// differ in this setting only are then equal. `None` if the DUT does not have the setting.
    #[must_use]
    pub fn apart(&self, setting: Setting) -> Option<(Value, Self)> {
        let mut others = Self {
            name: String::new(),
            ..self.clone()
        };
        if setting == Setting::Version {
            let software = &mut others.software;
            let version = software.version.take()?;
            if software.settings.take().is_none() {
                // With the program and all that follows from it; the environment is another
                // setting.
                let environment = mem::take(&mut software.environment);
                *software = Software {
                    environment,
                    ..Software::default()
                };
            }
            return Some((Value::Word(version), others));
        }
        let value = others.adapter.take(setting)?;
        Some((value, others))
    }
}

impl Adapter {
    /// Replaces a setting by a fixed value, and returns it; `None` if this kind does not have it.
    fn take(&mut self, setting: Setting) -> Option<Value> {
        Some(match (setting, self) {
            (
                Setting::Suite,
                Self::Cipherbench(Encryptor { suite, .. })
                | Self::StrongSwan(StrongSwan { suite, .. })
                | Self::OpenVpn(OpenVpn { suite, .. })
                | Self::Xfrm(Xfrm { suite, .. }),
            ) => {
                // Any fixed suite does: adapters without the setting are compared, and never
                // brought up.
                let suite = mem::replace(suite, Suite::Aes256Gcm);
                Value::Word(suite.name().to_owned())
            }
            (Setting::Engine, Self::Cipherbench(encryptor)) => {
                let engine = mem::replace(&mut encryptor.engine, Choice::Auto);
                Value::Word(engine.to_string())
            }
            (Setting::Keys, Self::Cipherbench(encryptor)) => {
                // The lifetime follows the source: without it the adapters would differ in two
                // settings.
                encryptor.rekey_every_ns = None;
                Value::Word(mem::take(&mut encryptor.keys).name().to_owned())
            }
            (Setting::Workers, Self::Cipherbench(encryptor)) => {
                Value::Number(mem::take(&mut encryptor.workers).into())
            }
            (
                Setting::Tunnels,
                Self::Cipherbench(Encryptor { tunnels, .. })
                | Self::StrongSwan(StrongSwan { tunnels, .. }),
            ) => Value::Number(mem::take(tunnels).into()),
            // Named one by one, so that the compiler asks for the arm of a new setting.
            (
                Setting::Suite
                | Setting::Engine
                | Setting::Keys
                | Setting::Workers
                | Setting::Tunnels
                | Setting::Version,
                _,
            ) => return None,
        })
    }
}

impl Cell {
    /// Its value in a dimension, and all that it shares with the other cells of a series along it;
    /// `None` without a value there, or if the [`group`](Self::group) does not name the axis.
    #[must_use]
    pub fn along(&self, dimension: Dimension) -> Option<(Value, Common)> {
        let (value, group, dut) = match dimension {
            Dimension::Axis(axis) => {
                // An axis that no id names has one value in the campaign: no series.
                let value = self.value(axis).filter(|_| self.is_named_by(axis))?;
                let dut = CommonDut::Named(self.dut.name.clone());
                (value, self.group_without(axis), dut)
            }
            // DUTs that differ in one setting have different names, so the settings are compared.
            Dimension::Setting(setting) => {
                let (value, others) = self.dut.apart(setting)?;
                (
                    value,
                    self.group.clone(),
                    CommonDut::Settings(Box::new(others)),
                )
            }
        };
        Some((value, Common { group, dut }))
    }
}
