//! Several devices behind one in-order queue.

use crate::{Command, Cpu, Device, Keys};
use base::Error;
use std::sync::Arc;

/// One or more devices of a seat. Commands run in order.
pub struct Queue {
    devices: Vec<Box<dyn Device>>,
}

impl Default for Queue {
    fn default() -> Self {
        Self::new(vec![Box::new(Cpu::default())])
    }
}

impl Queue {
    /// A queue in front of these devices, at least one.
    #[must_use]
    pub fn new(devices: Vec<Box<dyn Device>>) -> Self {
        assert!(!devices.is_empty(), "a queue has a device");
        Self { devices }
    }

    /// The name of its devices.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.devices[0].name()
    }

    /// Configures all devices.
    ///
    /// # Errors
    /// Those of the devices.
    pub fn configure(&mut self, keys: &Arc<Keys>) -> Result<(), Error> {
        self.devices.iter_mut().try_for_each(|device| device.configure(keys.clone()))
    }

    /// Runs a command to its completion.
    ///
    /// # Errors
    /// Those of the devices.
    pub fn run(&mut self, command: &mut Command<'_>) -> Result<(), Error> {
        self.devices[0].run(command)
    }
}
